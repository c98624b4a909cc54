//! One measurement of one contender under load.

use std::fs;
use std::time::Duration;

use crate::load::{self, Mode};
use crate::server::{Contender, Server, child};

pub struct Sample {
    /// Answers per second.
    pub rate: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// CPU seconds for 1,000 answers.
    pub application_cpu: f64,
    pub postgres_cpu: f64,
}

impl Sample {
    /// The CPU time of the application and of Postgres together.
    pub fn cpu(&self) -> f64 {
        self.application_cpu + self.postgres_cpu
    }
}

pub async fn sample(
    server: &Server,
    contender: &Contender,
    mode: Mode,
    connections: usize,
    time: Duration,
) -> Sample {
    let application = contender.process_id();
    let cpu = || (process_cpu(application), family_cpu(server.process_id()));
    let before = cpu();
    let latencies = load::send(contender.address, mode, connections, time)
        .await
        .0;
    let after = cpu();
    let count = latencies.len() as f64;
    let millis = |hundredth: usize| latencies[latencies.len() * hundredth / 100] as f64 / 1e6;
    Sample {
        rate: count / time.as_secs_f64(),
        p50_ms: millis(50),
        p99_ms: millis(99),
        application_cpu: (after.0 - before.0) / count * 1000.0,
        postgres_cpu: (after.1 - before.1) / count * 1000.0,
    }
}

/// Runs the three statements of a delivery without an application, with `pgbench`.
pub async fn pgbench(server: &Server, connections: usize, time: Duration) -> Sample {
    let script = tempfile::NamedTempFile::new().unwrap();
    fs::write(
        script.path(),
        "begin;
         insert into by_hand (delivery_id, event_type)
             values (gen_random_uuid()::text, 'push') on conflict do nothing;
         insert into effects (delivery_id) values ('pgbench');
         commit;",
    )
    .unwrap();
    let before = family_cpu(server.process_id());
    // With as many connections as the pools of the applications have.
    let output = child(&server.program("pgbench"))
        .args(["--protocol=prepared", "--no-vacuum", "--jobs=1"])
        .arg(format!("--client={}", connections.min(10)))
        .arg(format!("--time={}", time.as_secs()))
        .arg(format!("--file={}", script.path().display()))
        .arg(format!("--host={}", server.folder().display()))
        .args(["--username=postgres", "postgres"])
        .output()
        .await
        .unwrap();
    let after = family_cpu(server.process_id());
    let text = String::from_utf8(output.stdout).unwrap();
    let figure = |before: &str| -> f64 {
        let rest = text
            .split(before)
            .nth(1)
            .unwrap_or_else(|| panic!("{text}"));
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    let rate = figure("tps = ");
    let latency = figure("latency average = ");
    Sample {
        rate,
        p50_ms: latency,
        p99_ms: f64::NAN,
        application_cpu: 0.0,
        postgres_cpu: (after - before) / (rate * time.as_secs_f64()) * 1000.0,
    }
}

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The fields of `/proc/<pid>/stat` after the program name.
fn stat(process: u32) -> Option<Vec<u64>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields = fields.split_whitespace();
    Some(fields.map(|field| field.parse().unwrap_or(0)).collect())
}

/// The CPU time of a process in seconds, at the usual 100 ticks per second.
fn process_cpu(process: u32) -> f64 {
    stat(process).map_or(0.0, |fields| (fields[11] + fields[12]) as f64 / 100.0)
}

/// The CPU time of a process and its children, including children that have exited.
pub fn family_cpu(parent: u32) -> f64 {
    let own = stat(parent).map_or(0.0, |fields| {
        fields[11..15].iter().sum::<u64>() as f64 / 100.0
    });
    let children = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|process| stat(*process).is_some_and(|f| f[1] == u64::from(parent)))
        .map(process_cpu)
        .sum::<f64>();
    own + children
}
