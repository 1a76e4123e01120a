//! Context kind: whose packets the queues of a context execute.

/// Whose a context is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextKind {
    /// A program's.
    #[default]
    Program,
    /// `Flags.SystemContext`: the OS's own, for paging packets.
    System,
    /// The same, for the packets that initialise what drivers ask for with contexts, and for nothing else
    /// (choice): they hang no engine, and come before all others.
    Initialisation,
}
