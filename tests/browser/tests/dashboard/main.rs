//! The dashboard in a real browser, including values from hostile senders.

mod actions;
mod bulk;
mod clock;
mod curl;
mod double_click;
mod hostile;
mod login;
mod looks;
mod operator;
mod pages;
mod phone;
mod prefixes;
mod questions;
mod readers;
mod rebinding;
#[expect(dead_code, reason = "the menu is for the dashboard")]
#[path = "../../../../src/dashboard/page_list.rs"]
mod page_list;
mod stage;
