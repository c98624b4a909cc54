//! The requests to send, and the expected responses.

use crate::expectation::Expectation;
use crate::load::Load;
use crate::message::Message;
use crate::report::Report;
use crate::sending::send_all;
use crate::{Ended, Failed};

pub struct Plan {
    pub load: Load,
    pub message: Message,
    pub expectation: Expectation,
}

impl Plan {
    pub fn run(self) -> Result<Ended, Failed> {
        self.load.check()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let sent = runtime.block_on(send_all(&self.load, &self.message))?;
        let report = Report::new(&self, &sent);
        Ok(Ended {
            is_right: report.is_as_expected(),
            text: report.to_string(),
        })
    }
}
