//! Values from senders and names of operators that attack the dashboard: none of them runs as code, hides or overflows,
//! and links and actions reach exactly their targets.

use browser::{Browser, Look, Page};
use idempotent_webhook::dashboard::Access;
use reqwest::Url;
use serde_json::{Value, json};
use sqlx::Executor;

use crate::stage::{PREFIX, Stage, ada, assert_sound};

const MARKUP: [&str; 7] = [
    "<script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title></style></pre></select><script>alert(1)</script>",
    r#""><img src=x onerror=alert(1)>"#,
    "'onfocus='alert(1)' autofocus='",
    "javascript:alert(1)",
    "<!--<![CDATA[{{7*7}}${7*7}&lt;&#x3c;b&gt;",
];

const ADDRESSES: [&str; 7] = [
    "a&b=c;d%20e/../f?g#h+i j'k\"l`m{n}|o\\p^q",
    "%00%ff%2e%2e%2f",
    "id=other&endpoint=other&key=endpoint%3Dother",
    "//elsewhere.example/?x=http://elsewhere.example",
    "../../..",
    "two  spaces and a +",
    "action=discard&state=dead",
];

/// Texts that look different from what they are.
const LETTERS: [&str; 3] = [
    "evt_\u{202e}gnp.\u{2066}exe\u{2069}",
    "zero\u{200b}width\u{feff}\u{ad}and\u{2028}line",
    "ß漢字🦀é\u{301}עברית العربية",
];

/// Writes the texts to further columns, including values that the layer in this test would not let through, because
/// other layers may.
const AS_TENANT: &str = "
    with request as (
        update idempotent_webhook.kept_requests
        set tenant = endpoint,
            method = 'P<b>ST',
            uri = '/in?q=' || endpoint,
            headers = convert_to('x-kept: ' || endpoint, 'UTF8') || '\\x0affff01003c623e3a203c623e'
    )
    update idempotent_webhook.kept_deliveries set tenant = endpoint, tenant_name = endpoint
";

/// The id of the other delivery.
fn other(text: &str) -> String {
    let cut = text
        .char_indices()
        .nth(60)
        .map_or(text.len(), |(cut, _)| cut);
    format!("{}~", &text[..cut])
}

fn event(id: &str, text: &str) -> Value {
    json!({"id": id, "type": text, "dead": text, "data": [text, {text: text}]})
}

/// For each text: an endpoint with that name, a tenant with that name, a delivery with that id, event type and reason,
/// and another delivery.
async fn stage(texts: &[&str]) -> Stage {
    let stage = Stage::empty().await;
    for text in texts {
        assert_eq!(stage.sends(text, &event(text, text)).await, 409);
        assert_eq!(stage.sends(text, &event(&other(text), text)).await, 409);
    }
    stage.pool.execute(AS_TENANT).await.unwrap();
    stage
}

async fn assert_harmless(texts: &[&str]) {
    let (stage, browser) = tokio::join!(stage(texts), Browser::start());
    for (number, text) in texts.iter().enumerate() {
        println!("{text:?}");
        let look = Look {
            dark: number % 2 == 1,
            width: [360, 1280][number % 2],
            javascript: number % 3 > 0,
            ..Look::default()
        };
        let operator = Access::operate().with_payloads().named(*text);
        let server = stage.serve(operator).await;
        let mut page = browser.page(look).await;
        page.goto(&server.url(&format!("{PREFIX}/overview"))).await;
        assert_inert(&page).await;

        // Finds the delivery in the list.
        page.goto(&server.url(&format!("{PREFIX}/deliveries")))
            .await;
        assert_inert(&page).await;
        page.fill("select[name=endpoint]", text).await;
        page.fill("select[name=state]", "dead").await;
        page.fill("input[name=event_type]", text).await;
        assert_eq!(page.click_through(".filters button").await, 200);
        assert_inert(&page).await;
        assert_eq!(page.count("tbody tr").await, 2);
        let list = page.url().await;
        follow(&mut page, "td.id a", text).await;
        assert_inert(&page).await;
        assert_eq!(page.text_of(".facts code").await, spelt_out(text));
        assert_downloads(&page, event(text, text).to_string().as_bytes()).await;

        assert_eq!(page.click_through("form[action=act] button").await, 200);
        assert_inert(&page).await;
        assert_eq!(page.text_of(".lead .state").await, "due");
        assert_eq!(stage.state(text, text).await.as_deref(), Some("due"));
        assert_eq!(
            stage.state(text, &other(text)).await.as_deref(),
            Some("dead")
        );

        assert_eq!(page.click_through("a[href*='action=discard']").await, 200);
        assert_inert(&page).await;
        assert_eq!(page.click_through(".confirm button").await, 200);
        assert_inert(&page).await;
        assert_eq!(stage.state(text, text).await, None);
        assert_eq!(
            stage.state(text, &other(text)).await.as_deref(),
            Some("dead")
        );

        // Searches for the other delivery, and acts on it with the action on all deliveries in the list.
        page.fill("[type=search]", &other(text)).await;
        assert_eq!(page.click_through(".search button").await, 200);
        assert_inert(&page).await;
        follow(&mut page, "td.id a", &other(text)).await;
        page.goto(&list).await;
        let others = stage.kept().await.len();
        page.click_through(".actions a[href*='action=retry']").await;
        assert_inert(&page).await;
        assert_eq!(page.text_of("h1").await, "Retry 1 delivery?");
        page.click_through(".confirm a").await;
        assert_eq!(page.count("tbody tr").await, 1);
        // The action applies to exactly the filter of the list.
        assert_eq!(filters(&page.url().await), filters(&list));
        page.click_through(".actions a[href*='action=discard']")
            .await;
        page.click_through(".confirm button").await;
        stage.wait_for_actions().await;
        assert_eq!(stage.state(text, &other(text)).await, None);
        assert_eq!(stage.kept().await.len(), others - 1);

        page.goto(&server.url(&format!("{PREFIX}/actions"))).await;
        assert_inert(&page).await;
        follow(&mut page, "td a[href^=delivery]", text).await;
        page.goto(&server.url(&format!("{PREFIX}/actions"))).await;
        page.click_through("td a[href^='action?']").await;
        assert_inert(&page).await;
        assert_eq!(page.text_of("dd .state").await, "done");
    }
}

/// The parameters of a list, in any order. An empty field does not filter.
fn filters(url: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = Url::parse(url)
        .unwrap()
        .query_pairs()
        .into_owned()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    pairs.sort();
    pairs
}

/// Clicks on the link to this delivery, and checks where it leads.
async fn follow(page: &mut Page, selector: &str, id: &str) {
    let href: String = page
        .eval(&format!(
            "[...document.querySelectorAll({selector:?})]
                .find((link) => new URL(link.href).searchParams.get('id') === {id})
                .getAttribute('href')",
            id = json!(id)
        ))
        .await;
    assert_eq!(
        page.click_through(&format!("a[href={}]", json!(href)))
            .await,
        200
    );
    assert_eq!(page.text_of("h1").await, "Delivery");
    assert_eq!(page.text_of(".facts code").await, spelt_out(id));
}

/// The text as pages show it.
fn spelt_out(text: &str) -> String {
    let spell = |character: char| match character {
        '\u{ad}' | '\u{200b}' | '\u{feff}' | '\u{2028}' | '\u{202e}' | '\u{2066}' | '\u{2069}' => {
            format!("⟨U+{:04X}⟩", u32::from(character))
        }
        character => character.to_string(),
    };
    // Browsers show several spaces as a single space.
    text.chars()
        .map(spell)
        .collect::<String>()
        .replace("  ", " ")
}

async fn assert_downloads(page: &Page, expected: &[u8]) {
    let link: String = page
        .eval("document.querySelector('a[download]').href")
        .await;
    let answer = reqwest::get(&link).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/octet-stream");
    assert!(
        answer.headers()["content-disposition"]
            .to_str()
            .unwrap()
            .starts_with("attachment")
    );
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    assert!(
        answer.bytes().await.unwrap() == expected,
        "{link} has other bytes"
    );
}

/// Asserts that no text on the page has become markup.
async fn assert_inert(page: &Page) {
    assert_sound(page).await;
    let foreign: Vec<String> = page
        .eval(
            r"(() => {
                const foreign = [];
                for (const element of document.querySelectorAll('*')) {
                    const tag = element.outerHTML.split('\n')[0].slice(0, 200);
                    const names = ['img', 'iframe', 'object', 'embed', 'base', 'style', 'b', 'template'];
                    if (names.includes(element.localName)) foreign.push(tag);
                    if (element.localName === 'script' && !element.src) foreign.push(tag);
                    for (const { name, value } of element.attributes) {
                        if (name.startsWith('on') || ['style', 'autofocus', 'srcdoc'].includes(name)) foreign.push(tag);
                        if (['href', 'src', 'action', 'formaction'].includes(name)
                            && !new URL(value, document.baseURI).href.startsWith(location.origin + '/')) foreign.push(tag);
                        if (['title', 'aria-label'].includes(name) && /[\u202a-\u202e\u2066-\u2069]/.test(value)) foreign.push(tag);
                    }
                }
                if (/[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText.replace(document.querySelector('textarea')?.value, ''))) {
                    foreign.push('a mark of the direction of writing');
                }
                return foreign;
            })()",
        )
        .await;
    let url = page.url().await;
    assert!(foreign.is_empty(), "on {url}: {foreign:#?}");
}

#[tokio::test]
async fn markup_is_text() {
    assert_harmless(&MARKUP).await;
}

#[tokio::test]
async fn what_means_something_in_an_address_is_a_part_of_the_name() {
    assert_harmless(&ADDRESSES).await;
}

#[tokio::test]
async fn what_is_not_seen_is_spelt_out() {
    assert_harmless(&LETTERS).await;
}

#[tokio::test]
async fn what_is_long_is_broken() {
    // Ids of the greatest allowed length in bytes.
    let [narrow, wide] = ["long-".repeat(51), "漢".repeat(85)];
    let [escaped, slashes] = ["&<".repeat(127), "/".repeat(255)];
    assert_harmless(&[&narrow, &wide, &escaped, &slashes]).await;
}

#[tokio::test]
async fn any_body_is_shown_as_text_and_downloaded_as_it_came() {
    let (stage, browser) = tokio::join!(Stage::empty(), Browser::start());
    let server = stage.serve(ada()).await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let line = [b"\0\xff\xfe ".to_vec(), b"x".repeat(10 * 1024 * 1024)].concat();
    let marks = "\u{202e}\u{2066}</code></pre></textarea><script>alert(1)</script>";
    // The page cuts this off in the middle of a character.
    let wide = "漢".repeat(64 * 1024);
    let bodies: [(&str, Vec<u8>, &str); 8] = [
        ("every-byte", every_byte.repeat(300), "⟨U+0000⟩⟨U+0001⟩"),
        ("line", line, "⟨U+0000⟩\u{fffd}\u{fffd} xxxx"),
        (
            "marks",
            marks.into(),
            "⟨U+202E⟩⟨U+2066⟩</code></pre></textarea><script>alert(1)",
        ),
        ("wide", wide.into(), "漢漢"),
        ("deep", b"[".repeat(60_000), "[\n"),
        ("nul", b"\0".repeat(70_000), "⟨U+0000⟩⟨U+0000⟩"),
        (
            "number",
            br#"{"dead":"","a":123456789012345678901234567890,"b":1.10}"#.to_vec(),
            "1.10",
        ),
        ("empty", Vec::new(), ""),
    ];
    for (id, body, _) in &bodies {
        stage.dead_with_body("uploads", id, body.clone()).await;
    }
    for (width, javascript) in [(360, true), (1280, false)] {
        let look = Look {
            width,
            javascript,
            ..Look::default()
        };
        let mut page = browser.page(look).await;
        for (id, body, text) in &bodies {
            let url = server.url(&format!("{PREFIX}/delivery?endpoint=uploads&id={id}"));
            assert_eq!(page.goto(&url).await, 200);
            assert_inert(&page).await;
            let shown = page.text_of(".payload").await;
            assert!(
                shown.contains(text),
                "{id}: {}",
                shown.chars().take(200).collect::<String>()
            );
            let is_cut = page.text().await.contains("Only the first 64 KiB");
            assert_eq!(is_cut, body.len() > 64 * 1024, "{id}");
            assert_downloads(&page, body).await;
        }
    }
}
