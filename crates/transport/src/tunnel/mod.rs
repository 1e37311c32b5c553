//! Packets of links that another process carries: their form, the queues in which they wait, the task that sends them, and the
//! limit for packets that are sent on for others.

pub mod leg;
pub mod packet;
pub mod queues;
pub mod shaper;

#[cfg(test)]
mod tests;
