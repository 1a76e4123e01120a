//! Status codes (`ntstatus.h`) that the calls of this crate return.

/// `NTSTATUS`: negative for an error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
#[must_use = "a call that failed changed nothing"]
pub struct NtStatus(pub i32);

macro_rules! statuses {
    ($($(#[$about:meta])* $constant:ident $name:literal = $number:literal),+ $(,)?) => {
        impl NtStatus {
            $(
                $(#[$about])*
                #[doc = concat!("`", $name, "`.")]
                pub const $constant: Self = Self(($number as u32).cast_signed());
            )+
            /// Name and number of each.
            pub const ALL: &[(&str, u32)] = &[$(($name, $number)),+];
        }
    };
}

statuses! {
    /// The call did what it was asked for.
    SUCCESS "STATUS_SUCCESS" = 0,
    /// A time-out came first.
    TIMEOUT "STATUS_TIMEOUT" = 0x0000_0102,
    /// The call goes on without its caller.
    PENDING "STATUS_PENDING" = 0x0000_0103,
    /// The handle names nothing, something closed, something of another kind, or of another device.
    INVALID_HANDLE "STATUS_INVALID_HANDLE" = 0xC000_0008,
    /// An argument cannot be.
    INVALID_PARAMETER "STATUS_INVALID_PARAMETER" = 0xC000_000D,
    /// No memory for it.
    NO_MEMORY "STATUS_NO_MEMORY" = 0xC000_0017,
    /// A flag of the object forbids it.
    ACCESS_DENIED "STATUS_ACCESS_DENIED" = 0xC000_0022,
    /// A buffer of the caller's is too small.
    BUFFER_TOO_SMALL "STATUS_BUFFER_TOO_SMALL" = 0xC000_0023,
    /// Something that is not memory is used up: handles.
    INSUFFICIENT_RESOURCES "STATUS_INSUFFICIENT_RESOURCES" = 0xC000_009A,
    /// A feature that is published and not offered.
    NOT_SUPPORTED "STATUS_NOT_SUPPORTED" = 0xC000_00BB,
    /// The time-out of a call that waits came first.
    IO_TIMEOUT "STATUS_IO_TIMEOUT" = 0xC000_00B5,
    /// Another thread does the same at this time.
    DEVICE_BUSY "STATUS_DEVICE_BUSY" = 0x8000_0011,
    /// A defect of this library.
    INTERNAL_ERROR "STATUS_INTERNAL_ERROR" = 0xC000_00E5,
    /// No device of that name.
    NO_SUCH_DEVICE "STATUS_NO_SUCH_DEVICE" = 0xC000_000E,
    /// The device is lost: destroy it and make it anew.
    DEVICE_REMOVED "STATUS_DEVICE_REMOVED" = 0xC000_02B6,
    /// The driver refused what it should have taken: make the queue anew; should that be refused too, the
    /// adapter.
    DRIVER_INTERNAL_ERROR "STATUS_DRIVER_INTERNAL_ERROR" = 0xC000_0183,
    /// The queue was stopped at a packet: destroy it and make it anew.
    GPU_EXCEPTION_ON_DEVICE "STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE" = 0xC01E_0200,
}

impl NtStatus {
    /// `NT_SUCCESS`: whether it is no error.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 >= 0
    }
}

impl std::fmt::Debug for NtStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.0.cast_unsigned();
        let mut all = Self::ALL.iter();
        match all.find(|(_, known)| *known == number) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "NTSTATUS {number:#010x}"),
        }
    }
}
