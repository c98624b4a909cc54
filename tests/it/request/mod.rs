//! One request: how it is read, what the sender gets, and that it goes on without its client.

mod answers;
mod bodies;
mod canary;
mod hang_up;
mod wait;
