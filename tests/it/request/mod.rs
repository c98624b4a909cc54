//! One request: how it is read, what the sender gets, and that its end is not the client's.

mod answers;
mod bodies;
mod canary;
mod hang_up;
mod wait;
