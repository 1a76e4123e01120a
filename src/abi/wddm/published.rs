//! How a published declaration is written down: a plain type of Rust, and beside it the published
//! names, which the C header is made of and tests compare.
//!
//! A layout is asserted at compile time, so that an error names the member that moved.

/// A published structure.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Its C name.
    pub name: &'static str,
    /// The name of its type here.
    pub rust: &'static str,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its members, without padding.
    pub members: &'static [Member],
}

/// A member of a published structure.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its C name.
    pub name: &'static str,
    /// The name of its field here.
    pub rust: &'static str,
    /// Its C type, where that is another than the field's: a pointer.
    pub pointer: Option<&'static str>,
    /// Its offset in bytes.
    pub offset: usize,
}

/// A published word of single bits and narrow numbers.
#[derive(Clone, Copy, Debug)]
pub struct BitField {
    /// Its C name.
    pub name: &'static str,
    /// The name of its type here.
    pub rust: &'static str,
    /// Name, lowest bit and number of bits of each.
    pub parts: &'static [(&'static str, u32, u32)],
}

/// A published enumeration.
#[derive(Clone, Copy, Debug)]
pub struct Enumeration {
    /// Its C name.
    pub name: &'static str,
    /// The name of its type here.
    pub rust: &'static str,
    /// Name and number of each value.
    pub values: &'static [(&'static str, u32)],
}

/// Gives a plain structure its published names, and pins size and offsets.
macro_rules! structure {
    ($type:ident is $name:literal, $size:literal bytes {
        $($field:ident $member:literal $(as $pointer:literal)? @ $offset:literal),+ $(,)?
    }) => {
        impl $type {
            #[doc = concat!("`", $name, "`: size, and names and offsets of its members.")]
            pub const LAYOUT: $crate::abi::wddm::Structure = $crate::abi::wddm::Structure {
                name: $name,
                rust: stringify!($type),
                bytes: $size,
                members: &[$($crate::abi::wddm::Member {
                    name: $member,
                    rust: stringify!($field),
                    pointer: $crate::abi::wddm::published::first_of!($($pointer)?),
                    offset: $offset,
                }),+],
            };
        }
        const _: () = {
            $(assert!(
                core::mem::offset_of!($type, $field) == $offset,
                concat!($name, ".", $member, " moved")
            );)+
            assert!(core::mem::size_of::<$type>() == $size, concat!("size of ", $name));
        };
    };
}
pub(crate) use structure;

/// The one literal, if there is one.
macro_rules! first_of {
    () => {
        None
    };
    ($literal:literal) => {
        Some($literal)
    };
}
pub(crate) use first_of;

/// Declares a word of bits with its published names. Any 32 bits can stand in it: whoever takes it
/// from a user asks for `unknown` ones.
macro_rules! bit_field {
    ($(#[$meta:meta])* $type:ident is $name:literal {
        $($(#[$about:meta])* $constant:ident $part:literal @ $low:literal $(x $width:literal)?),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $type(pub u32);

        impl $type {
            #[doc = concat!("`", $name, "`: its parts.")]
            pub const PARTS: $crate::abi::wddm::BitField = $crate::abi::wddm::BitField {
                name: $name,
                rust: stringify!($type),
                parts: &[$(($part, $low, $crate::abi::wddm::published::width_of!($($width)?))),*],
            };
            $(
                $(#[$about])*
                pub const $constant: Self = Self(
                    ((1 << $crate::abi::wddm::published::width_of!($($width)?)) - 1) << $low
                );
            )*

            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether a bit of `other` is set.
            #[must_use]
            pub const fn has_any(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// The bits of both.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits that have no published meaning.
            #[must_use]
            pub const fn unknown(self) -> u32 {
                self.0 & !(0 $(| Self::$constant.0)*)
            }
        }
    };
}
pub(crate) use bit_field;

/// How many bits a part of a word has.
macro_rules! width_of {
    () => {
        1
    };
    ($width:literal) => {
        $width
    };
}
pub(crate) use width_of;

/// Declares an enumeration with its published names. Any number can stand in it: a user or another
/// side may have written it.
macro_rules! enumeration {
    ($(#[$meta:meta])* $type:ident is $name:literal {
        $($(#[$about:meta])* $constant:ident $value:literal = $number:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $type(pub u32);

        impl $type {
            #[doc = concat!("`", $name, "`: its values.")]
            pub const VALUES: $crate::abi::wddm::Enumeration = $crate::abi::wddm::Enumeration {
                name: $name,
                rust: stringify!($type),
                values: &[$(($value, $number)),+],
            };
            $(
                $(#[$about])*
                #[doc = concat!("`", $value, "`.")]
                pub const $constant: Self = Self($number);
            )+
        }
    };
}
pub(crate) use enumeration;
