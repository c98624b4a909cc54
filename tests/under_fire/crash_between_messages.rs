//! Goes through every message between the application and Postgres in the life of a delivery, and
//! inflicts every fault before each of these messages. In the end, the delivery must have been
//! processed once.
//!
//! A *boundary* is the point before a message. A *cell* of the printed table is one boundary with
//! one fault.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::Length;
use crate::fault::{FAULTS, Fault};
use crate::history::{Event, Recorder, Upheld};
use crate::process::Process;
use crate::proxy::{Message, Proxy};
use crate::sender::{Attempt, Sender};
use crate::server::Server;

/// The results of all rounds for one boundary and one fault.
#[derive(Default)]
struct Cell {
    most_attempts: u32,
    /// The result of the attempt that the fault hit.
    first: BTreeSet<String>,
}

/// The result of a lane.
#[derive(Default)]
struct Done {
    cells: usize,
    /// How many attempts failed although no fault hit them.
    again: u32,
    acknowledged: usize,
    upheld: Upheld,
}

/// A server, a proxy and an application that only this lane uses. Several lanes work side by side,
/// because a cell spends most of its time waiting.
struct Lane {
    number: usize,
    server: Server,
    proxy: Proxy,
    process: Process,
    sender: Sender,
    recorder: Recorder,
    /// How many attempts failed although no fault hit them.
    again: u32,
}

const LANES: usize = 4;

pub async fn run(length: Length) {
    let mut lanes = Vec::new();
    for number in 0..LANES {
        lanes.push(Lane::start(number).await);
    }
    let mut boundaries = Vec::new();
    for lane in &mut lanes {
        boundaries = lane.record().await;
    }
    let rounds = match length {
        Length::Short => 1,
        Length::Long => 20,
    };
    println!(
        "\ncrash between messages: {} boundaries, {} faults\n",
        boundaries.len(),
        FAULTS.len()
    );
    print_row("before", FAULTS.map(|fault| fault.name().to_owned()));

    let started = Instant::now();
    let (todo, done) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let working: Vec<_> = lanes
        .into_iter()
        .map(|lane| {
            tokio::spawn(lane.work(
                boundaries.clone(),
                length,
                rounds,
                todo.clone(),
                Arc::clone(&done),
            ))
        })
        .collect();
    let mut all = Done::default();
    for lane in working {
        let done = lane.await.unwrap();
        all.cells += done.cells;
        all.again += done.again;
        all.acknowledged += done.acknowledged;
        all.upheld += done.upheld;
    }
    let Done {
        cells,
        again,
        acknowledged,
        upheld,
    } = all;
    println!(
        "\n{cells} cells, {rounds} times each, in {:.0} s: {acknowledged} deliveries \
         acknowledged, each with its effects exactly once; 0 connections left in a transaction",
        started.elapsed().as_secs_f64(),
    );
    println!("{upheld}");
    println!("{again} further attempts at deliveries that came after the fault");
    println!(
        "a cell: the most attempts until the acknowledgement, and the result of the attempt \
         that was hit (- is no answer, . is a fault when there was nothing to harm yet)"
    );
}

/// Whether a cell belongs to the short form of the test, which inflicts the cut and one more fault
/// at every boundary.
fn is_short(number: usize, column: usize) -> bool {
    column == 0 || column == 1 + number % (FAULTS.len() - 1)
}

/// Finished rows that follow an unfinished one, and the number of the next row to print.
type Rows = Mutex<(usize, BTreeMap<usize, Row>)>;
type Row = [String; FAULTS.len()];

fn print_in_order(rows: &Rows, boundaries: &[Message], number: usize, row: Row) {
    let (next, waiting) = &mut *rows.lock().unwrap();
    waiting.insert(number, row);
    while let Some(row) = waiting.remove(next) {
        let message = &boundaries[*next];
        let arrow = if message.to_postgres { "->" } else { "<-" };
        print_row(&format!("{next:3} {arrow} {}", message.name), row);
        *next += 1;
    }
}

impl Lane {
    async fn start(number: usize) -> Self {
        let server = Server::start().await;
        let proxy = Proxy::start(server.socket()).await;
        let recorder = Recorder::start();
        Self {
            number,
            process: Process::new(proxy.url(), &recorder, 2, Duration::from_millis(500)),
            server,
            proxy,
            sender: Sender::new(&recorder),
            recorder,
            again: 0,
        }
    }

    /// Works on one boundary after another, until none is left.
    async fn work(
        mut self,
        boundaries: Vec<Message>,
        length: Length,
        rounds: u32,
        todo: Arc<AtomicUsize>,
        done: Arc<Rows>,
    ) -> Done {
        let mut cells = 0;
        loop {
            let number = todo.fetch_add(1, Ordering::Relaxed);
            if number >= boundaries.len() {
                break;
            }
            let mut row = Row::default();
            for (column, fault) in FAULTS.into_iter().enumerate() {
                if length == Length::Short && !is_short(number, column) {
                    continue;
                }
                let mut cell = Cell::default();
                for round in 0..rounds {
                    self.fire(number, fault, round, &mut cell).await;
                }
                cells += 1;
                row[column] = cell.to_string();
            }
            print_in_order(&done, &boundaries, number, row);
        }
        self.check_all(cells).await
    }

    /// The messages in the life of the first delivery of a process, from the connection to Postgres
    /// until the connection is back in the pool.
    async fn record(&mut self) -> Vec<Message> {
        let _never_due = self.proxy.arm(usize::MAX);
        self.deliver("recorded").await;
        let mut messages = self.proxy.seen();
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let more = self.proxy.seen();
            if more.len() == messages.len() {
                break;
            }
            messages = more;
        }
        let commits = messages
            .iter()
            .filter(|message| message.name.ends_with("Query COMMIT"))
            .count();
        assert!(commits >= 1, "no commit in {messages:?}");
        messages
    }

    /// Runs one cell once.
    async fn fire(&mut self, number: usize, fault: Fault, round: u32, cell: &mut Cell) {
        self.process.kill().await;
        let address = self.process.address().await;
        let mut due = self.proxy.arm(number);
        let id = format!("{number}-{fault:?}-{round}");
        let first = tokio::spawn({
            let (sender, id) = (self.sender.clone(), id.clone());
            async move { sender.send(address, &id, "").await }
        });
        let due = tokio::time::timeout(Duration::from_secs(10), due.recv())
            .await
            .unwrap_or_else(|_| panic!("boundary {number} was never reached"))
            .unwrap();
        let inflicted = fault.inflict(due, &self.process, &self.server).await;

        let attempt = first.await.unwrap();
        cell.first.insert(match (&attempt, inflicted) {
            (_, false) => ".".into(),
            (Attempt::Answered { status, .. }, true) => status.to_string(),
            (Attempt::Unanswered, true) => "-".into(),
        });
        let attempts = self.retry(&id, attempt).await;
        cell.most_attempts = cell.most_attempts.max(attempts);

        // This must work regardless of the state in which the fault has left the pool.
        self.deliver(&format!("after-{id}")).await;
    }

    async fn attempt(&self, id: &str) -> Attempt {
        let address = self.process.address().await;
        self.sender.send(address, id, "").await
    }

    /// Retries until the delivery is acknowledged. Returns how many attempts that took.
    async fn retry(&self, id: &str, mut attempt: Attempt) -> u32 {
        let mut attempts = 1;
        while !attempt.is_acknowledged() {
            attempts += 1;
            assert!(attempts < 500, "{id} is never acknowledged: {attempt:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
            attempt = self.attempt(id).await;
        }
        attempts
    }

    /// Sends a delivery without inflicting a fault. Only a slow disk may make its attempts fail.
    async fn deliver(&mut self, id: &str) {
        let attempt = self.attempt(id).await;
        self.again += self.retry(id, attempt).await - 1;
    }

    /// After one more crash, everything that was acknowledged is still there, exactly once.
    async fn check_all(&self, cells: usize) -> Done {
        self.server.restart().await;
        let history = self.server.history(&self.recorder).await;
        let upheld = history.assert_upheld(&format!("crash_between_messages-{}", self.number));
        assert_eq!(self.server.left_in_transaction().await, 0);
        let acknowledged = history.ids(|event| match event {
            Event::Answered { attempt, .. } => attempt.is_acknowledged(),
            _ => false,
        });
        Done {
            cells,
            again: self.again,
            acknowledged: acknowledged.len(),
            upheld,
        }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first: Vec<&str> = self.first.iter().map(String::as_str).collect();
        write!(f, "{} {}", self.most_attempts, first.join("/"))
    }
}

fn print_row(boundary: &str, cells: [String; FAULTS.len()]) {
    print!("{:<43}", format!("{boundary:.42}"));
    for cell in cells {
        print!(" {cell:<12}");
    }
    println!();
}
