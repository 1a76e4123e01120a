//! Address: where an array lies, as structures hold it.

/// The address of the first element; of none one that is not NULL either, which is another thing.
pub(super) fn address_of<T>(array: &[T]) -> u64 {
    array.as_ptr().expose_provenance() as u64
}
