//! Counts of events in rooms with walls, summed over all runs.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// See the module's text.
        #[derive(Debug, Clone, Default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
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

counters! {
    /// A member took a link that another one carries.
    links_carried,
    /// A direct link took the place of a carried one, at one end.
    links_taken_over,
    /// Two ends dialled at the same time, and the wall between them opened.
    walls_opened,
    /// An end of a carried link chose another carrier, or none.
    carriers_changed,
    /// An end of a carried link chose another carrier after a report that one does not carry.
    carriers_changed_after_reports,
    /// A carrier reported that it does not carry to a member.
    carriers_refused,
    /// A host was shown another path.
    paths_changed,
    /// A member got another address.
    rebindings,
    /// A carrier dropped packets one way, and the link was lost.
    links_lost_one_way,
    /// A carrier dropped packets one way, and both ends were linked without it meanwhile.
    one_way_drops_survived,
    /// Members dialled an unused address that a liar had named.
    victims_dialled,
    /// A member of the version before took a carried link.
    old_members_carried,
    /// A room settled in which a pair was linked by a carrier.
    rooms_settled_with_carriers,
    /// A room settled without walls that had had some.
    rooms_settled_without_walls,
}
