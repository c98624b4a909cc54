//! A single request: how it is read, what the sender gets, and that it continues without its
//! client.

mod answers;
mod bodies;
mod canary;
mod hang_up;
mod wait;
