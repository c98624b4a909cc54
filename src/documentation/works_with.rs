//! Works with.
