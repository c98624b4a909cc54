//! Everything at once, for as long as you like. Four processes share one Postgres, with each way to keep deliveries,
//! and with routes that keep none. Deliveries come in several copies, handlers fail, some events never come and are
//! reconciled, and retention and operators are at work. Meanwhile, processes are killed, frozen and deployed again,
//! their connections are cut, and Postgres crashes. One process lives through all of it, to see whether its memory
//! grows.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use provider_apis::{Api, webhook};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::Length;
use crate::application::{ARCHIVED, WANTED};
use crate::history::{End, Event, History, Recorder};
use crate::operator::Order;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::sender::{Attempt, Request, Sender};
use crate::server::Server;

const PROCESSES: usize = 4;

/// The time between one delivery and the next.
const PACE: Duration = Duration::from_millis(30);

/// The time between one event of a list and the next.
const LIST_PACE: Duration = Duration::from_millis(500);

/// The webhook of one in this many events never comes. The number of an event shows whether its webhook comes.
const NEVER_COMES: u64 = 6;

/// How old an event must be to be reconciled. An event whose request is still running is younger.
const GRACE: Duration = Duration::from_secs(5);

/// How many deliveries are sent at once, at most.
const MOST: usize = 100;

/// For how long the provider sends a delivery again. The time is short enough that even a request that waits in a
/// frozen process arrives within the redelivery window.
const GIVES_UP: Duration = Duration::from_secs(6);

/// How long the provider waits for an answer.
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// How long a process is frozen. After a silence of this length, another process takes over its work.
const FROZEN: Duration = Duration::from_secs(8);

/// The routes of the soak and of recovery, and the lists.
const ENDPOINTS: [&str; 11] = [
    "", // `/`
    "late-alone",
    "kept",
    "acknowledged",
    "all",
    "accepted",
    "late-kept",
    "late",
    ARCHIVED,
    "stripe",
    "github",
];

/// How many of the endpoints keep nothing.
const ALONE: usize = 2;
/// How many of the endpoints have a list.
const LISTED: usize = 2;

/// One in this many deliveries fails at each attempt.
const HOPELESS: f64 = 1.0 / 60.0;

/// How long the last delivery may take. A process that stops may fail to give up its reconciliation turn, which then
/// lasts for three minutes, so this time is longer.
const PATIENCE: Duration = Duration::from_secs(240);

/// After this time, a process should need no more memory.
const WARM_UP: Duration = Duration::from_secs(300);

struct World {
    server: Server,
    /// The process at the first place lives to the end.
    places: Vec<Place>,
    sender: Sender,
    recorder: Recorder,
    lists: Vec<(&'static str, Api)>,
    /// The events whose webhooks never came.
    missing: Mutex<BTreeSet<String>>,
    counts: Counts,
    over: AtomicBool,
}

/// A process, and its proxy to Postgres.
struct Place {
    process: Process,
    proxy: Proxy,
}

#[derive(Default)]
struct Counts {
    deliveries: AtomicU32,
    copies: AtomicU32,
    given_up: AtomicU32,
    kills: AtomicU32,
    freezes: AtomicU32,
    deploys: AtomicU32,
    cuts: AtomicU32,
    crashes: AtomicU32,
}

fn add(count: &AtomicU32) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// A delivery as its provider knows it.
struct Sent {
    endpoint: &'static str,
    id: String,
    event_type: &'static str,
    /// What the handler does at each attempt, if the delivery is kept.
    behaviours: Vec<&'static str>,
}

pub async fn run(length: Length, time: Option<Duration>) {
    let time = time.unwrap_or(match length {
        Length::Short => Duration::from_secs(20),
        Length::Long => Duration::from_secs(300),
    });
    let seed = fastrand::u64(..);
    println!("\neverything at once, for {time:?}: {PROCESSES} processes, seed {seed}\n");
    let mut random = Rng::with_seed(seed);
    let world = World::start().await;
    let started = Instant::now();

    let mut tasks = JoinSet::new();
    tasks.spawn(world.clone().send(random.fork()));
    tasks.spawn(world.clone().send_events(random.fork()));
    tasks.spawn(world.clone().operate(random.fork()));
    tasks.spawn(world.clone().crash_postgres(random.fork()));
    for place in 0..PROCESSES {
        tasks.spawn(world.clone().harm(place, random.fork()));
    }
    let memory = world.watch(started, time, &mut tasks).await;
    world.over.store(true, Ordering::Relaxed);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    world.wait_for_the_last().await;

    let in_transaction = world.server.left_in_transaction().await;
    let history = world.server.history(&world.recorder).await;
    world.report(&history, started.elapsed());
    println!("{}", history.assert_upheld("everything"));
    assert_eq!(in_transaction, 0, "connections in a transaction");
    let places = u32::try_from(PROCESSES).unwrap();
    let starts: u32 = world
        .places
        .iter()
        .map(|place| place.process.starts())
        .sum();
    let count = |count: &AtomicU32| count.load(Ordering::Relaxed);
    let ends = count(&world.counts.kills) + count(&world.counts.deploys);
    assert_eq!(starts, places + ends, "a process has ended by itself");
    memory.assert_bounded();
}

/// How much memory the process that lives to the end has used, and when.
struct Memory(Vec<(Duration, u64)>);

impl Memory {
    fn assert_bounded(&self) {
        let warm = self.0.iter().find(|(at, _)| *at >= WARM_UP);
        let (Some((at, warm)), Some((end, last))) = (warm, self.0.last()) else {
            return;
        };
        println!(
            "memory of the process that lived to the end: {} after {} minutes, {} after {}",
            megabytes(*warm),
            at.as_secs() / 60,
            megabytes(*last),
            end.as_secs() / 60
        );
        assert!(last * 2 < warm * 3, "its memory grows");
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

impl World {
    async fn start() -> Arc<Self> {
        let server = Server::start().await;
        let recorder = Recorder::start();
        let mut lists = Vec::new();
        let mut addresses = Vec::new();
        for name in &ENDPOINTS[ENDPOINTS.len() - LISTED..] {
            let (api, address) = Api::start(name).await;
            addresses.push(format!("{name}={address}"));
            lists.push((*name, api));
        }
        let mut places = Vec::new();
        for _ in 0..PROCESSES {
            let proxy = Proxy::start(server.socket()).await;
            let process = Process::new(proxy.url(), &recorder, 6, Duration::from_secs(1))
                .recovering()
                .reconciling(addresses.join(","), GRACE)
                .pruning();
            process.address().await;
            places.push(Place { process, proxy });
        }
        Arc::new(Self {
            server,
            places,
            sender: Sender::new(&recorder),
            recorder,
            lists,
            missing: Mutex::default(),
            counts: Counts::default(),
            over: AtomicBool::new(false),
        })
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    async fn any_address(&self, random: &mut Rng) -> std::net::SocketAddr {
        let place = &self.places[random.usize(..PROCESSES)];
        place.process.address().await
    }

    /// Sends deliveries at a steady pace, often in several copies.
    async fn send(self: Arc<Self>, mut random: Rng) {
        let mut beat = tokio::time::interval(PACE);
        beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut sending = JoinSet::new();
        for number in 0.. {
            beat.tick().await;
            if self.is_over() {
                break;
            }
            let sent = Arc::new(Sent::random(number, &mut random));
            add(&self.counts.deliveries);
            let copies = match random.f64() < 0.3 {
                true => random.u32(2..=4),
                false => 1,
            };
            let first = Instant::now();
            for copy in 0..copies {
                let late = match copy {
                    0 => Duration::ZERO,
                    _ => Duration::from_millis(random.u64(0..1500)),
                };
                let (world, sent, random) = (self.clone(), sent.clone(), random.fork());
                sending.spawn(async move {
                    tokio::time::sleep(late).await;
                    world.deliver(&sent, first, random).await;
                });
            }
            while sending.len() >= MOST {
                sending.join_next().await.unwrap().unwrap();
            }
            while let Some(sent) = sending.try_join_next() {
                sent.unwrap();
            }
        }
        while let Some(sent) = sending.join_next().await {
            sent.unwrap();
        }
    }

    /// Sends a copy until it is acknowledged, or until the provider gives up.
    async fn deliver(&self, sent: &Sent, first: Instant, mut random: Rng) {
        add(&self.counts.copies);
        loop {
            let attempt = self.attempt(sent, &mut random).await;
            // A provider sends a failed delivery again, even if it is kept.
            if attempt.is_acknowledged() || attempt.outcome() == "kept" && random.bool() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(random.u64(50..500))).await;
            if first.elapsed() > GIVES_UP {
                add(&self.counts.given_up);
                break;
            }
        }
    }

    async fn attempt(&self, sent: &Sent, random: &mut Rng) -> Attempt {
        let address = self.any_address(random).await;
        let path = format!("/{}", sent.endpoint);
        let request = Request {
            event_type: sent.event_type,
            behaviour: match random.f64() {
                0.00..0.02 => "fail",
                0.02..0.04 => "panic",
                0.04..0.05 => "hang",
                _ => "sleep 5",
            },
            behaviours: &sent.behaviours,
            // Some senders hang up at a random moment.
            patience: match random.f64() < 0.05 {
                true => Duration::from_millis(random.u64(1..60)),
                false => REQUEST_TIME,
            },
            ..Request::new(address, &path, &sent.id)
        };
        self.sender.deliver(&request).await
    }

    /// Makes events happen, and sends the webhooks of most of them. Reconciliation finds the others, and keeps them or
    /// asks the provider to send them.
    async fn send_events(self: Arc<Self>, mut random: Rng) {
        let mut beat = tokio::time::interval(LIST_PACE);
        let mut sending = JoinSet::new();
        let mut over_since = None;
        for number in 1.. {
            beat.tick().await;
            // After the last event, this loop still sends the deliveries that reconciliation asks for. A delivery that
            // does not come breaks a rule of the history.
            if self.is_over() {
                let since = *over_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE || self.all_missing_are_known().await {
                    break;
                }
            }
            for (name, api) in &self.lists {
                let mut numbers = api.take_redeliveries();
                if !self.is_over() {
                    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                    api.add(provider_apis::Event {
                        number,
                        time: time.as_secs(),
                    });
                    let id = format!("{name}-{number}");
                    if number % NEVER_COMES == 0 {
                        self.recorder.missing(&id);
                        self.missing.lock().unwrap().insert(id);
                    } else {
                        numbers.push(number);
                    }
                }
                for number in numbers {
                    sending.spawn(self.clone().deliver_event(name, number, random.fork()));
                }
            }
            while let Some(sent) = sending.try_join_next() {
                sent.unwrap();
            }
        }
        while let Some(sent) = sending.join_next().await {
            sent.unwrap();
        }
    }

    async fn deliver_event(self: Arc<Self>, name: &'static str, number: u64, mut random: Rng) {
        add(&self.counts.deliveries);
        add(&self.counts.copies);
        let first = Instant::now();
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let event = provider_apis::Event { number, time };
        while first.elapsed() < GIVES_UP {
            let uri = format!("http://{}/{name}", self.any_address(&mut random).await);
            let request = webhook(name, event).uri(&uri).request::<reqwest::Body>();
            let mut request: reqwest::Request = request.try_into().unwrap();
            *request.timeout_mut() = Some(REQUEST_TIME);
            let id = format!("{name}-{number}");
            if self.sender.execute(&id, request).await.is_acknowledged() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(random.u64(50..500))).await;
        }
        add(&self.counts.given_up);
    }

    /// Whether each event whose webhook never came is now kept or processed.
    async fn all_missing_are_known(&self) -> bool {
        let missing: Vec<String> = self.missing.lock().unwrap().iter().cloned().collect();
        let missing = missing.join("','");
        let sql = format!(
            "select count(*)
             from unnest(array['{missing}']) as id
             where id <> '' and not exists (select from noted where delivery_id = id)"
        );
        self.server.count(&sql).await == 0
    }

    /// Gives orders about kept deliveries and about endpoints.
    async fn operate(self: Arc<Self>, mut random: Rng) {
        let keeping = &ENDPOINTS[ALONE..];
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(random.u64(50..500))).await;
            let (order, states) = match random.f64() {
                0.0..0.4 => (Order::Retry, "'due', 'dead'"),
                0.4..0.5 => (Order::Discard, "'due', 'dead'"),
                0.5..0.8 => (Order::Reprocess, "'processed'"),
                0.8..0.85 => (Order::Pause, ""),
                _ => (Order::Resume, ""),
            };
            let (endpoint, id) = match states {
                "" => {
                    let endpoint = keeping[random.usize(..keeping.len())];
                    (endpoint.to_owned(), endpoint.to_owned())
                }
                states => match self.server.any_kept(states).await {
                    Some(kept) => kept,
                    None => continue,
                },
            };
            let address = self.any_address(&mut random).await;
            self.sender.order(address, order, &endpoint, &id).await;
        }
    }

    async fn crash_postgres(self: Arc<Self>, mut random: Rng) {
        loop {
            self.rest(random.u64(5..40)).await;
            if self.is_over() {
                break;
            }
            self.server.restart().await;
            add(&self.counts.crashes);
        }
    }

    /// Sleeps for this many seconds, or until the run is over.
    async fn rest(&self, seconds: u64) {
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until && !self.is_over() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Harms a process again and again.
    async fn harm(self: Arc<Self>, number: usize, mut random: Rng) {
        let Place { process, proxy } = &self.places[number];
        let lives = number == 0;
        loop {
            self.rest(random.u64(2..12)).await;
            // Starts the process, if it was killed.
            process.address().await;
            if self.is_over() {
                break;
            }
            let counts = &self.counts;
            match random.f64() {
                0.0..0.3 if !lives => {
                    process.kill().await;
                    add(&counts.kills);
                    self.server.end_turns().await;
                }
                0.3..0.5 if !lives => {
                    process.deploy().await;
                    add(&counts.deploys);
                }
                0.5..0.75 => {
                    let frozen = process.freeze(FROZEN);
                    let end_turns = async {
                        tokio::time::sleep(FROZEN / 2).await;
                        self.server.end_turns().await;
                    };
                    tokio::join!(frozen, end_turns);
                    add(&counts.freezes);
                }
                _ => {
                    proxy.cut();
                    add(&counts.cuts);
                }
            }
        }
    }

    /// Checks the memory of the processes each minute, until the time is over or a task fails.
    async fn watch(&self, started: Instant, time: Duration, tasks: &mut JoinSet<()>) -> Memory {
        let mut memory = Memory(Vec::new());
        loop {
            let left = time.saturating_sub(started.elapsed());
            tokio::select! {
                () = tokio::time::sleep(left.min(Duration::from_secs(60))) => {}
                Some(done) = tasks.join_next() => done.unwrap(),
            }
            let at = started.elapsed();
            let mut held = Vec::new();
            for place in &self.places {
                held.extend(place.process.memory().await);
            }
            memory.0.extend(held.first().map(|lives| (at, *lives)));
            let held: Vec<String> = held.into_iter().map(megabytes).collect();
            println!(
                "  {:>4} s: {:>6} deliveries, the processes hold {}",
                at.as_secs(),
                self.counts.deliveries.load(Ordering::Relaxed),
                held.join(", "),
            );
            if at >= time {
                return memory;
            }
        }
    }

    /// Resumes all endpoints, and waits until nothing is due, at most until `PATIENCE` is over. A delivery that is
    /// still due breaks a rule of the history.
    async fn wait_for_the_last(&self) {
        let mut random = Rng::new();
        for endpoint in &ENDPOINTS[ALONE..] {
            let deadline = Instant::now() + PATIENCE;
            loop {
                let address = self.any_address(&mut random).await;
                let resume = self
                    .sender
                    .order(address, Order::Resume, endpoint, endpoint);
                if resume.await.is_acknowledged() {
                    break;
                }
                assert!(Instant::now() < deadline, "{endpoint} is not resumed");
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let due = "select count(*) from idempotent_webhook.kept_deliveries where state = 'due'";
        while self.server.count(due).await > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn report(&self, history: &History, elapsed: Duration) {
        println!();
        for (answer, times) in history.answers() {
            println!("  {answer:<20} {times:>7}");
        }
        let count = |count: &AtomicU32| count.load(Ordering::Relaxed);
        let happened = |event: Event| history.count(|happened| *happened == event);
        let orders = |order| {
            history.count(
                |event| matches!(event, Event::Sent { path, .. } if Order::at(path) == Some(order)),
            )
        };
        let counts = &self.counts;
        println!(
            "\n{} copies of {} deliveries in {:.0} s; the provider gave up {} copies",
            count(&counts.copies),
            count(&counts.deliveries),
            elapsed.as_secs_f64(),
            count(&counts.given_up),
        );
        println!(
            "{} processes killed, {} frozen, {} deployed, their connections cut {} times, Postgres crashed {} times",
            count(&counts.kills),
            count(&counts.freezes),
            count(&counts.deploys),
            count(&counts.cuts),
            count(&counts.crashes),
        );
        println!(
            "orders: {} to retry, {} to discard, {} to reprocess, {} to pause, {} to resume",
            orders(Order::Retry),
            orders(Order::Discard),
            orders(Order::Reprocess),
            orders(Order::Pause),
            orders(Order::Resume),
        );
        println!(
            "{} effects; {} kept, {} due again, {} reprocessed, {} discarded, {} dead in the end; {} never came; \
             {} claims and {} dead pruned",
            happened(Event::Committed),
            happened(Event::Kept),
            happened(Event::Rescheduled),
            happened(Event::Reprocessed),
            happened(Event::Discarded),
            happened(Event::Ended(End::Dead)),
            happened(Event::Missing),
            happened(Event::ClaimPruned),
            happened(Event::DeadPruned),
        );
    }
}

impl Sent {
    fn random(number: u64, random: &mut Rng) -> Self {
        let endpoint = ENDPOINTS[random.usize(..ENDPOINTS.len() - LISTED)];
        let name = match endpoint {
            "" => "fire",
            endpoint => endpoint,
        };
        Self {
            endpoint,
            id: format!("{name}-{number}"),
            // One of the endpoints ignores this event type.
            event_type: match random.f64() < 0.1 {
                true => "watch",
                false => WANTED,
            },
            behaviours: behaviours(random),
        }
    }
}

fn behaviours(random: &mut Rng) -> Vec<&'static str> {
    if random.f64() < HOPELESS {
        return vec!["fail"; 20];
    }
    let failures = match random.f64() < 0.3 {
        true => random.usize(1..3),
        false => 0,
    };
    let behaviour = |random: f64| match random {
        0.0..0.6 => "fail",
        0.6..0.85 => "panic",
        _ => "hang",
    };
    (0..failures).map(|_| behaviour(random.f64())).collect()
}
