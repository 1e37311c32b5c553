//! Packets of links that another process carries: their form, the queues in which they wait, and the task that sends them.

pub mod leg;
pub mod packet;
pub mod queues;

#[cfg(test)]
mod tests;
