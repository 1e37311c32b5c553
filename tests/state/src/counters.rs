//! Structs of counters.

/// Defines a struct of counters that start at 0, and maybe of notes that only its module reads, after a semicolon.
#[macro_export]
macro_rules! counters {
    (
        $(#[$about:meta])* $counts:ident:
        $($(#[$doc:meta])* $name:ident),* $(,)?
        $(; $($(#[$note:meta])* $field:ident: $type:ty),* $(,)?)?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default)]
        pub struct $counts {
            $($(#[$doc])* pub $name: u64,)*
            $($($(#[$note])* $field: $type,)*)?
        }

        impl $counts {
            /// Every counter with its name.
            pub fn table(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            /// Adds another run's counts.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}
