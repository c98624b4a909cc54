//! Where to send requests, how often, and how many at once.

use std::time::Duration;

use clap::{Args, value_parser};

use crate::target::Target;

#[derive(Args)]
pub struct Load {
    /// The URL to send to: http://, or https:// for a canary; redirects are not followed, and no proxy is used
    #[arg(long, value_name = "URL")]
    pub to: Target,

    /// Allow another machine in --to
    #[arg(long)]
    anywhere: bool,

    /// How many times to send the request
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    pub times: u32,

    /// How many requests to send at once; with 1, each request is answered before the next is sent
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub concurrency: u32,

    /// How long to wait for each answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl Load {
    /// Refuses to send to another machine by mistake.
    pub fn check(&self) -> Result<(), String> {
        if self.to.has_tls() {
            return Err(
                "https:// is only for --canary: give the http:// address of the server itself"
                    .to_owned(),
            );
        }
        match self.anywhere || self.to.is_loopback() {
            true => Ok(()),
            false => Err(format!(
                "{} is not this machine: if you are allowed to send to it, add --anywhere",
                self.to.host()
            )),
        }
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
