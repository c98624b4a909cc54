//! Checks that the harness finds problems, on pages that have them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use axum::extract::{RawForm, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::get;
use axum::{Router, response::Response};
use browser::{Browser, Database, Finding, Look, Page, Proxy, Server};

/// A page that is clean except for the given content.
fn page(content: &str) -> String {
    format!(
        r#"<!doctype html>
        <html lang="en"><head><title>Page</title><link rel="icon" href="data:,"></head>
        <body><main><h1>Page</h1>{content}</main></body></html>"#
    )
}

async fn serve(html: String) -> Server {
    Server::start(Router::new().route("/", get(async || Html(html)))).await
}

struct Visit {
    page: Page,
    server: Server,
    _browser: Browser,
}

async fn visit(content: &str, look: Look) -> Visit {
    visit_html(page(content), look).await
}

async fn visit_html(html: String, look: Look) -> Visit {
    let server = serve(html).await;
    let browser = Browser::start().await;
    let mut page = browser.page(look).await;
    assert_eq!(page.goto(&server.url("/")).await, 200);
    Visit {
        page,
        server,
        _browser: browser,
    }
}

async fn findings(content: &str) -> Vec<Finding> {
    visit(content, Look::default()).await.page.findings().await
}

const FORM: &str = r#"
    <form method="post" action="/made">
        <label>Name <input name="name" required></label>
        <label>Day <input name="day" type="date"></label>
        <label>Kind <select name="kind"><option>a<option>b</select></label>
        <button>Make</button>
    </form>
    <a href="/made">Elsewhere</a>"#;

/// Answers a form with a redirect to a page that shows the submitted values.
fn form() -> Router {
    async fn make(RawForm(form): RawForm) -> Redirect {
        Redirect::to(&format!("/made?{}", String::from_utf8_lossy(&form)))
    }
    async fn made(request: Request) -> Html<String> {
        let query = request.uri().query().unwrap_or("nothing").replace('&', " ");
        Html(page(&format!("<p>{query}</p>")))
    }
    Router::new()
        .route("/", get(async || Html(page(FORM))))
        .route("/made", get(made).post(make))
}

#[tokio::test]
async fn a_clean_page_is_clean() {
    for dark in [false, true] {
        for javascript in [false, true] {
            let content = r##"<style>:root { color-scheme: light dark }</style>
                <h2>Part</h2><p>Text with <a href="/">a link</a> and <em>emphasis</em>.</p>
                <table><tr><th scope="col">Id<tr><td>1</table>
                <label for="q">Search</label> <input id="q"> <button>Go</button>
                <label><input type="checkbox"> All</label>
                <svg role="img" aria-label="three"><text x="9" y="9" fill="currentColor">3</text></svg>"##;
            let look = Look {
                dark,
                javascript,
                ..Look::default()
            };
            let visit = visit(content, look).await;
            visit.page.assert_clean().await;
            visit.page.assert_accessible().await;
            assert!(!visit.page.has_horizontal_overflow().await);
            assert_eq!(visit.page.requests().await[0], visit.server.url("/"));
        }
    }
}

#[tokio::test]
async fn a_console_error_is_found() {
    let found = findings("<script>console.error('broken', 7); console.log('fine')</script>").await;
    assert_eq!(found, [Finding::Console("broken 7".into())]);
}

#[tokio::test]
async fn an_exception_is_found() {
    let found = findings("<script>missing()</script>").await;
    let [Finding::Exception(text)] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(text.contains("missing is not defined"), "{text}");
}

#[tokio::test]
async fn an_alert_is_found_and_dismissed() {
    let found = findings("<img src='data:,' alt='' onerror='alert(`hacked`)'>").await;
    assert!(
        found.contains(&Finding::Dialog("hacked".into())),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_request_to_another_host_is_found() {
    let found = findings("<img src='http://foreign.example/x.png' alt=''>").await;
    assert!(
        found.contains(&Finding::ForeignRequest(
            "http://foreign.example/x.png".into()
        )),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_request_to_another_port_is_found() {
    let other = serve(page("")).await;
    let found = findings(&format!("<img src='{}' alt=''>", other.url("/"))).await;
    assert_eq!(found, [Finding::ForeignRequest(other.url("/"))]);
}

#[tokio::test]
async fn a_violation_of_the_policy_is_found() {
    for (content, directive) in [
        ("<script>document.title = 'changed'</script>", "script"),
        ("<p style='color: red'>red</p>", "style"),
        ("<img src='/picture' alt=''>", "img-src"),
        ("<p onclick='hacked()'>a</p>", "script"),
    ] {
        let html = page(content);
        let server = Server::start(Router::new().route(
            "/",
            get(async || {
                let policy = [(
                    header::CONTENT_SECURITY_POLICY,
                    "default-src 'none'; img-src data:",
                )];
                (policy, Html(html))
            }),
        ))
        .await;
        for javascript in [true, false] {
            // A script that does not run at all cannot violate the policy.
            if !javascript && directive == "script" {
                continue;
            }
            let browser = Browser::start().await;
            let mut page = browser
                .page(Look {
                    javascript,
                    ..Look::default()
                })
                .await;
            page.goto(&server.url("/")).await;
            // Some versions of Chromium check an inline handler when its element is parsed, and
            // others when the handler is called.
            if content.contains("onclick") {
                page.click("p").await;
            }
            let found = page.findings().await;
            let [Finding::Violation(text)] = &found[..] else {
                panic!("{directive}, scripts {javascript}: {found:?}")
            };
            assert!(text.contains(directive), "{text}");
            assert_eq!(page.title().await, "Page");
        }
    }
}

#[tokio::test]
async fn a_form_that_the_policy_forbids_is_found() {
    let server = Server::start(Router::new().route(
        "/",
        get(async || {
            let policy = [(header::CONTENT_SECURITY_POLICY, "form-action 'none'")];
            (policy, Html(page(FORM)))
        }),
    ))
    .await;
    let browser = Browser::start().await;
    let mut page = browser.page(Look::default()).await;
    page.goto(&server.url("/")).await;
    page.fill("[name=name]", "Ann").await;
    page.click("button").await;
    let found = page.findings().await;
    let [Finding::Violation(text)] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(text.contains("form-action"), "{text}");
}

#[tokio::test]
async fn a_missing_resource_is_found_but_an_error_page_is_not() {
    let server = Server::start(
        Router::new()
            .route("/", get(async || Html(page("<img src='/gone' alt=''>"))))
            .fallback(async || (StatusCode::NOT_FOUND, Html(page("Nothing here.")))),
    )
    .await;
    let browser = Browser::start().await;
    let mut page = browser.page(Look::default()).await;
    page.goto(&server.url("/")).await;
    let found = page.findings().await;
    let [Finding::Log(text)] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(text.contains("404") && text.contains("/gone"), "{text}");

    assert_eq!(page.goto(&server.url("/nothing")).await, 404);
    page.assert_clean().await;
}

#[tokio::test]
#[should_panic(expected = "is not clean:\n  console: broken")]
async fn a_page_with_a_finding_fails_the_test() {
    let visit = visit("<script>console.error('broken')</script>", Look::default()).await;
    visit.page.assert_clean().await;
}

#[tokio::test]
#[should_panic(expected = "is not accessible:\n  a link without text")]
async fn a_page_with_a_problem_fails_the_test() {
    let visit = visit("<a href='/'></a>", Look::default()).await;
    visit.page.assert_accessible().await;
}

#[tokio::test]
async fn each_accessibility_problem_is_found() {
    let browser = Browser::start().await;
    for (content, words) in [
        ("<h3>Deep</h3>", "a heading of level 3 below one of level 1"),
        ("<h2></h2>", "a heading without text"),
        ("<h1>Again</h1>", "there are 2 h1"),
        ("<div role='main'></div>", "there are 2 main"),
        ("<input>", "a control without a name"),
        ("<input placeholder='Name'>", "a control without a name"),
        (
            "<label><select><option>a</select></label>",
            "a control without a name",
        ),
        ("<textarea></textarea>", "a control without a name"),
        (
            "<button><svg aria-hidden='true'></svg></button>",
            "a control without a name",
        ),
        ("<input type='button'>", "a control without a name"),
        ("<a href='/'> </a>", "a link without text"),
        (
            "<a href='/'><img src='data:image/gif,' alt=''></a>",
            "a link without text",
        ),
        ("<img src='data:image/gif,'>", "a picture without a label"),
        ("<svg role='img'></svg>", "a picture without a label"),
        ("<svg></svg>", "neither labelled nor hidden"),
        ("<p id='a'></p><p id='a'></p>", "an id that is not unique"),
        (
            "<p aria-describedby='gone'>a</p>",
            "aria-describedby names no element",
        ),
        (
            "<p style='color: #808080'>grey</p>",
            "text with a contrast of 3.95, #808080 on #ffffff",
        ),
        (
            "<p style='color: oklch(70% 0 0)'>grey</p>",
            "text with a contrast of",
        ),
        (
            "<p style='color: rgb(0 0 0 / 40%)'>pale</p>",
            "text with a contrast of 2.85",
        ),
        (
            "<div style='opacity: 0.4'><p>pale</p></div>",
            "text with a contrast of 2.85",
        ),
        (
            "<div style='background: #222'><p>dark</p></div>",
            "#000000 on #222222",
        ),
        (
            "<p style='background: linear-gradient(red, blue)'>a</p>",
            "text on a picture",
        ),
        (
            "<input aria-label='a' style='color: #999'>",
            "a field with a contrast of",
        ),
        (
            "<style>::placeholder { color: #ccc }</style><input aria-label='a' placeholder='b'>",
            "a placeholder with",
        ),
        (
            "<svg role='img' aria-label='a'><text y='9' fill='#ddd'>a</text></svg>",
            "text with a contrast of",
        ),
        (
            "<svg role='img' aria-label='a'><rect width='9' height='9' fill='#aaa'/></svg>",
            "a bar with a contrast of 2.32, #aaaaaa to #ffffff",
        ),
        (
            "<svg role='img' aria-label='a'>
                <rect class='ground' width='9' height='9' fill='#555'/>
                <rect width='9' height='9' fill='#222'/>
             </svg>",
            "a bar with a contrast of 2.13, #222222 to #555555",
        ),
        (
            "<svg role='img' aria-label='a'>
                <rect width='9' height='9' fill='#222'/>
                <rect y='9' width='9' height='9' fill='#555'/>
             </svg>",
            "a bar that touches another one with a contrast of 2.13",
        ),
        (
            "<button style='width: 20px; height: 20px; padding: 0'>a</button><button
                style='width: 60px; height: 30px'>b</button>",
            "a target of 20 by 20 pixels",
        ),
        (
            "<style>a { display: inline-block; width: 9px; height: 9px }</style>
            <p><a href='/'>a</a> <button style='width: 60px; height: 30px'>b</button></p>",
            "a target of 9 by 9 pixels",
        ),
    ] {
        let server = serve(page(content)).await;
        let mut page = browser.page(Look::default()).await;
        page.goto(&server.url("/")).await;
        let found = page.accessibility_problems().await;
        assert!(
            found.len() == 1 && found[0].contains(words),
            "{content}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_strict_policy_does_not_hinder_the_check_nor_notice_it() {
    let html = page("<img src='data:,' style=''><label><b><select><option>a</select></b></label>");
    let server = Server::start(Router::new().route(
        "/",
        get(async || {
            let policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
            ([(header::CONTENT_SECURITY_POLICY, policy)], Html(html))
        }),
    ))
    .await;
    for javascript in [true, false] {
        let browser = Browser::start().await;
        let mut page = browser
            .page(Look {
                javascript,
                ..Look::default()
            })
            .await;
        page.goto(&server.url("/")).await;
        let requests = page.requests().await;
        assert_eq!(
            page.accessibility_problems().await,
            [
                "a control without a name: <select> \"a\"",
                "a picture without a label: <img src=\"data:,\" style=\"\"> \"\"",
            ]
        );
        assert_eq!(page.requests().await, requests);
        page.assert_clean().await;
    }
}

#[tokio::test]
async fn what_is_disabled_or_hidden_has_no_problem() {
    let visit = visit(
        "<button disabled style='color: #999'>Off</button>
         <p hidden style='color: #eee'>a</p><div style='display: none'><input></div>
         <input type='hidden' name='token'>",
        Look::default(),
    )
    .await;
    visit.page.assert_accessible().await;
}

#[tokio::test]
async fn what_is_small_has_no_problem_with_space_around_it_or_in_a_sentence() {
    let visit = visit(
        "<p>A sentence with <a href='/'>a link</a>, <a href='/'>b</a> and more words around them.</p>
         <button style='width: 10px; height: 10px; padding: 0; margin: 20px'>a</button>
         <button style='width: 10px; height: 10px; padding: 0; margin: 20px'>b</button>
         <p><label style='display: inline-block; padding: 9px'><input type='checkbox'> all</label></p>
         <svg role='img' aria-label='a'>
            <rect width='9' height='9' fill='#222'/>
            <rect y='10' width='9' height='9' fill='#555'/>
            <rect x='9' width='9' height='9' fill='#555'/>
         </svg>",
        Look::default(),
    )
    .await;
    visit.page.assert_accessible().await;
}

#[tokio::test]
async fn a_page_without_its_frame_is_found() {
    let bare = "<!doctype html><p>Text</p>".to_owned();
    let visit = visit_html(bare, Look::default()).await;
    assert_eq!(
        visit.page.accessibility_problems().await,
        [
            "html has no lang",
            "the page has no title",
            "there are 0 main elements",
            "there are 0 h1 elements",
        ]
    );
}

#[tokio::test]
async fn overflow_is_seen_in_a_narrow_window() {
    let wide = "<div style='width: 500px'>wide</div><div style='height: 3000px'></div>";
    for (width, overflows) in [(360, true), (1280, false)] {
        let look = Look {
            width,
            ..Look::default()
        };
        let visit = visit(wide, look).await;
        assert_eq!(visit.page.eval::<u32>("innerWidth").await, width);
        assert_eq!(visit.page.has_horizontal_overflow().await, overflows);
    }
}

#[tokio::test]
async fn the_look_is_emulated() {
    for (dark, colour) in [(true, "rgb(0, 0, 1)"), (false, "rgb(0, 0, 2)")] {
        for (timezone, hour) in [("Asia/Kolkata", "17:30"), ("America/New_York", "07:00")] {
            let look = Look {
                dark,
                timezone,
                ..Look::default()
            };
            let visit = visit(
                "<style>
                    p { background: rgb(0, 0, 2) }
                    @media (prefers-color-scheme: dark) { p { background: rgb(0, 0, 1) } }
                 </style>
                 <p></p>
                 <script>
                    const noon = new Date('2025-01-15T12:00:00Z');
                    document.querySelector('p').textContent = noon.toTimeString().slice(0, 5);
                 </script>",
                look,
            )
            .await;
            assert_eq!(visit.page.text_of("p").await, hour);
            let painted: String = visit
                .page
                .eval("getComputedStyle(document.querySelector('p')).backgroundColor")
                .await;
            assert_eq!(painted, colour);
        }
    }
}

#[tokio::test]
async fn without_scripts_only_those_of_the_test_run() {
    for (javascript, shown) in [(true, "script"), (false, "none")] {
        let look = Look {
            javascript,
            ..Look::default()
        };
        let visit = visit(
            "<p>none</p><script>document.querySelector('p').textContent = 'script'</script>",
            look,
        )
        .await;
        assert_eq!(visit.page.text_of("p").await, shown);
        assert_eq!(visit.page.eval::<u8>("1 + 1").await, 2);
    }
}

#[tokio::test]
async fn a_page_that_loads_itself_again_is_asked_once_more() {
    let visit = visit("", Look::default()).await;
    let said: String = visit
        .page
        .eval(
            "sessionStorage.left
                ? 'the page that follows'
                : (sessionStorage.left = true, location.reload(), new Promise(() => {}))",
        )
        .await;
    assert_eq!(said, "the page that follows");
}

#[tokio::test]
async fn a_form_is_submitted_by_mouse_and_by_keyboard() {
    let server = Server::start(form()).await;
    let browser = Browser::start().await;
    for javascript in [true, false] {
        let mut page = browser
            .page(Look {
                javascript,
                ..Look::default()
            })
            .await;

        page.goto(&server.url("/")).await;
        page.fill("[name=name]", "was here").await;
        page.fill("[name=name]", "Ann").await;
        page.fill("[name=day]", "2025-01-15").await;
        page.fill("select", "b").await;
        assert_eq!(page.click_through("button").await, 200);
        assert!(page.text().await.contains("name=Ann day=2025-01-15 kind=b"));
        assert!(page.url().await.contains("/made?"));

        page.goto(&server.url("/")).await;
        assert_eq!(page.focused().await, "body");
        page.press("Tab").await;
        assert_eq!(page.focused().await, "input[name=name]");
        for key in ["B", "o", "2", "Enter"] {
            page.press(key).await;
        }
        page.wait_for_navigation().await;
        assert!(page.text().await.contains("name=Bo2 day= kind=a"));

        page.goto(&server.url("/")).await;
        page.fill("[name=name]", "Cy").await;
        page.fill("[name=name]", "").await;
        page.click("button").await;
        // The browser does not send a form while a required field is empty.
        assert!(page.has_focus("[name=name]").await);
        page.press("C").await;
        assert_eq!(page.submit("form").await, 200);
        assert!(page.text().await.contains("name=C day="));

        page.goto(&server.url("/")).await;
        page.eval::<()>("document.querySelector('button').focus()")
            .await;
        assert_eq!(page.focused().await, "button \"Make\"");
        page.press("Shift+Tab").await;
        assert_eq!(page.focused().await, "select[name=kind]");
        page.press("Tab").await;
        page.press("Tab").await;
        assert_eq!(page.focused().await, "a \"Elsewhere\"");
        page.press("Enter").await;
        page.wait_for_navigation().await;
        assert!(page.text().await.contains("nothing"));
        page.back().await;
        assert_eq!(page.count("form").await, 1);
        page.reload().await;
        page.assert_clean().await;
    }
}

#[tokio::test]
#[should_panic(expected = "hidden or covered")]
async fn what_is_covered_cannot_be_clicked() {
    let visit = visit(
        "<button>a</button><div style='position: fixed; inset: 0'></div>",
        Look::default(),
    )
    .await;
    visit.page.click("button").await;
}

#[tokio::test]
async fn a_proxy_strips_or_adds_a_prefix_and_keeps_the_host() {
    async fn echo(headers: HeaderMap, request: Request) -> Response {
        let host = headers[header::HOST].to_str().unwrap().to_owned();
        Html(page(&format!("{} at {host}", request.uri()))).into_response()
    }
    let server = Server::start(form().fallback(echo)).await;
    let browser = Browser::start().await;
    let mut page = browser.page(Look::default()).await;

    let proxy = Proxy::stripping("/ops", &server).await;
    assert_eq!(page.goto(&proxy.url("/ops/x?y=%2F")).await, 200);
    let said = page.text().await;
    assert!(
        said.contains(&format!("/x?y=%2F at {}", proxy.address())),
        "{said}"
    );
    assert_eq!(page.goto(&proxy.url("/opsx")).await, 404);
    assert_eq!(page.goto(&proxy.url("/x")).await, 404);

    // The target of this form lacks the prefix, and the proxy does not add it.
    assert_eq!(page.goto(&proxy.url("/ops")).await, 200);
    page.fill("[name=name]", "Ann").await;
    assert_eq!(page.click_through("button").await, 404);
    assert_eq!(page.url().await, proxy.url("/made"));

    let proxy = Proxy::adding("/ops", &server).await;
    page.goto(&proxy.url("/x")).await;
    let said = page.text().await;
    assert!(
        said.contains(&format!("/ops/x at {}", proxy.address())),
        "{said}"
    );
    page.assert_clean().await;
}

#[tokio::test]
async fn a_screenshot_shows_the_whole_page() {
    let visit = visit("<div style='height: 3000px'></div>", Look::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.png");
    visit.page.screenshot(&file).await;
    let png = fs::read(file).unwrap();
    assert_eq!(&png[1..4], b"PNG");
    let height = u32::from_be_bytes(png[20..24].try_into().unwrap());
    assert!(height > 3000, "{height}");
}

#[tokio::test]
async fn a_database_has_the_tables() {
    let (one, other) = (Database::new().await, Database::new().await);
    sqlx::query("drop schema idempotent_webhook cascade")
        .execute(&other.pool)
        .await
        .unwrap();
    sqlx::query("select from idempotent_webhook.redelivery_windows")
        .execute(&one.pool)
        .await
        .unwrap();
}

/// How many processes have the folder of a browser in their arguments.
fn processes(folder: &Path) -> usize {
    let folder = folder.to_str().unwrap();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.ok()?.path().join("environ")).ok())
        .filter(|environment| String::from_utf8_lossy(environment).contains(folder))
        .count()
}

#[tokio::test]
async fn nothing_is_left_of_a_browser() {
    let server = serve(page("")).await;
    let browser = Browser::start().await;
    browser
        .page(Look::default())
        .await
        .goto(&server.url("/"))
        .await;
    let folder = browser.folder().to_owned();
    assert!(processes(&folder) > 3);
    drop(browser);
    assert_eq!(processes(&folder), 0);
    assert!(!folder.exists());
}

#[tokio::test]
async fn nothing_is_left_after_a_panic() {
    let (tell, told) = std::sync::mpsc::channel::<PathBuf>();
    let failed = tokio::spawn(async move {
        let browser = Browser::start().await;
        let page = browser.page(Look::default()).await;
        tell.send(browser.folder().to_owned()).unwrap();
        page.click("#gone").await;
    })
    .await;
    assert!(failed.unwrap_err().is_panic());
    let folder = told.recv_timeout(Duration::from_secs(1)).unwrap();
    assert_eq!(processes(&folder), 0);
    assert!(!folder.exists());
}

const FOLDER: &str = "folder: ";

#[tokio::test]
#[ignore = "another test kills it"]
async fn a_test_that_is_killed() {
    let browser = Browser::start().await;
    browser.page(Look::default()).await;
    println!("\n{FOLDER}{}", browser.folder().display());
    std::future::pending().await
}

#[tokio::test]
async fn nothing_is_left_after_a_kill() {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_test_that_is_killed", "--ignored"])
        .arg("--nocapture")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = BufReader::new(victim.stdout.take().unwrap())
        .lines()
        .find_map(|line| Some(PathBuf::from(line.unwrap().strip_prefix(FOLDER)?)))
        .unwrap();
    assert!(processes(&folder) > 3);
    victim.kill().unwrap();
    victim.wait().unwrap();
    // From now on, the shell that runs the browser has to clean up.
    for _ in 0..1000 {
        if processes(&folder) == 0 && !folder.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} processes are left", processes(&folder));
}
