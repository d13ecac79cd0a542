// SPDX-License-Identifier: GPL-2.0-or-later
//! A structure of C as callers of this crate may see it: documented, and with its pointers private.

/// Declares a structure with the fields of a generated one, in any order of theirs that C has, and
/// holds size, alignment and every field's offset and size against it at compile time.
macro_rules! face {
    (
        $(#[$meta:meta])*
        pub struct $name:ident = $c:ident {
            $($(#[$doc:meta])* $visible:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        pub struct $name {
            $($(#[$doc])* $visible $field: $type,)*
        }

        const _: () = {
            use std::mem::offset_of;
            use crate::ffi::generated::$c;
            const fn size_of_field<S, T>(_: fn(&S) -> &T) -> usize {
                size_of::<T>()
            }
            assert!(size_of::<$name>() == size_of::<$c>());
            assert!(align_of::<$name>() == align_of::<$c>());
            $(
                assert!(offset_of!($name, $field) == offset_of!($c, $field));
                assert!(size_of::<$type>() == size_of_field(|c: &$c| &c.$field));
            )*
        };
    };
}

pub(crate) use face;
