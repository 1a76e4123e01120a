//! One macro that gives a plain structure its field offsets and pins them.

/// Declares `impl Type { pub const FIELD: u64 = offset; … }` and asserts each offset and the size
/// at compile time, so that an error names the field that moved.
macro_rules! offsets {
    ($type:ident, size $size:literal, { $($(#[$meta:meta])* $constant:ident = $field:ident @ $offset:literal),+ $(,)? }) => {
        impl $type {
            $(
                $(#[$meta])*
                #[doc = concat!("Byte offset of `", stringify!($field), "`.")]
                pub const $constant: u64 = $offset;
            )+
            /// Size of the whole structure in bytes.
            pub const BYTES: u64 = $size;
        }
        const _: () = {
            $(assert!(
                core::mem::offset_of!($type, $field) == $offset,
                concat!(stringify!($type), ".", stringify!($field), " moved")
            );)+
            assert!(core::mem::size_of::<$type>() == $size, concat!("size of ", stringify!($type)));
        };
    };
}
pub(crate) use offsets;
