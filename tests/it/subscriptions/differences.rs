//! Each kind of difference between a provider's subscription and the layer's expectation, and
//! subscriptions without a difference.

use axum::Router;
use axum::routing::post;
use idempotent_webhook::subscriptions::{StripeSubscriptions, Subscriptions};
use idempotent_webhook::{Events, IdempotentWebhook, Secret};
use provider_apis::{Api, Hook, KEY, at, preset};

use super::{URL, found, handle};
use crate::support::Database;

fn off(hook: Hook) -> Hook {
    Hook {
        is_on: false,
        ..hook
    }
}

fn with_version(hook: Hook, version: &'static str) -> Hook {
    Hook {
        version: Some(version),
        ..hook
    }
}

/// Each line of the report consists of `error: ` or `hint: `, and the difference.
#[tokio::test]
async fn y2_each_difference_is_told_and_nothing_else() {
    let database = Database::new().await;
    let paid = ["invoice.paid"];
    let hook = |number, url: &str| Hook::new(number, url, &paid);
    let fine = "The subscription is as expected.\n";
    for (case, handled, hooks, expected) in [
        ("as it should be", &paid[..], vec![hook(1, URL)], fine),
        (
            "nothing at all",
            &paid,
            vec![],
            "error: no subscription has the address https://example.com/webhooks, and there is no other subscription \
             (the API does not list event destinations of version 2, and endpoints of the other mode or of another \
             account)\n",
        ),
        (
            "others only, of which a foreign path may be a secret",
            &paid,
            vec![
                hook(1, "https://example.com/webhook?token=secret"),
                hook(2, "https://chat.example/services/secret"),
            ],
            "error: no subscription has the address https://example.com/webhooks; there are others at \
             https://chat.example, https://example.com/webhook (the API does not list event destinations of version 2, \
             and endpoints of the other mode or of another account)\n",
        ),
        (
            "the path at another host",
            &paid,
            vec![
                hook(1, "https://old.example/webhooks"),
                hook(2, "https://chat.example/a"),
            ],
            "error: no subscription has the address https://example.com/webhooks; the same path is subscribed at \
             https://old.example/webhooks\n",
        ),
        (
            "another scheme and another slash",
            &paid,
            vec![
                hook(1, "http://example.com/webhooks"),
                hook(2, "https://example.com/webhooks/"),
            ],
            "error: no subscription has the address https://example.com/webhooks; the same path is subscribed at \
             http://example.com/webhooks, https://example.com/webhooks/\n",
        ),
        (
            "the path at another host as well, as that of a test",
            &paid,
            vec![hook(1, "https://staging.example/webhooks"), hook(2, URL)],
            fine,
        ),
        (
            "the same address, written in another way",
            &paid,
            vec![hook(1, "HTTPS://a:b@EXAMPLE.com:443/webhooks?v=1")],
            fine,
        ),
        (
            "switched off",
            &paid,
            vec![off(hook(1, URL))],
            "error: the subscription we_1 is switched off\n",
        ),
        (
            "one that is off was replaced",
            &paid,
            vec![off(hook(1, URL)), hook(2, URL)],
            fine,
        ),
        (
            "not subscribed",
            &["charge.refunded", "customer.subscription.*", "invoice.paid"],
            vec![hook(1, URL)],
            "error: charge.refunded has a handler and is not subscribed\n\
             error: customer.subscription.* has a handler and is not subscribed\n",
        ),
        (
            "the types of one that is off are compared, too",
            &["charge.refunded"],
            vec![off(hook(1, URL))],
            "error: the subscription we_1 is switched off\n\
             error: charge.refunded has a handler and is not subscribed\n\
             hint: invoice.paid is subscribed and has no handler\n",
        ),
        (
            "a type of a group",
            &["invoice.*"],
            vec![hook(1, URL), Hook::new(2, URL, &["invoice.item.*"])],
            "hint: invoice.* has a handler, but only some of its types are subscribed: invoice.item.*, invoice.paid\n",
        ),
        (
            "a group",
            &["invoice.*", "charge.dispute.*"],
            vec![Hook::new(1, URL, &["invoice.*", "charge.*"])],
            fine,
        ),
        (
            "a group, of which a type is subscribed twice",
            &["invoice.*"],
            vec![hook(1, URL), Hook::new(2, URL, &["*"])],
            "error: several subscriptions have the address and a type in common: we_1, we_2\n\
             hint: all types are subscribed, and those without a handler are ignored\n",
        ),
        (
            "over two subscriptions",
            &["invoice.paid", "charge.refunded"],
            vec![hook(1, URL), Hook::new(2, URL, &["charge.refunded"])],
            fine,
        ),
        (
            "not handled",
            &paid,
            vec![Hook::new(1, URL, &["invoice.paid", "charge.updated"])],
            "hint: charge.updated is subscribed and has no handler\n",
        ),
        (
            "all",
            &paid,
            vec![Hook::new(1, URL, &["*"])],
            "hint: all types are subscribed, and those without a handler are ignored\n",
        ),
        (
            "no table",
            &[],
            vec![Hook::new(1, URL, &["charge.updated"])],
            fine,
        ),
        (
            "several",
            &paid,
            vec![
                hook(1, URL),
                hook(2, URL),
                Hook::new(3, URL, &["charge.updated"]),
            ],
            "error: several subscriptions have the address and a type in common: we_1, we_2\n\
             hint: charge.updated is subscribed and has no handler\n",
        ),
    ] {
        let report = found(&database.pool, "stripe", handled, hooks).await;
        assert_eq!(report.to_string(), expected, "{case}");
        let has_errors = expected.contains("error: ");
        assert_eq!(report.has_errors(), has_errors, "{case}");
        assert_eq!(report.errors().next().is_some(), has_errors, "{case}");
        assert_eq!(
            report.hints().next().is_some(),
            expected.contains("hint: "),
            "{case}"
        );
    }
}

#[tokio::test]
async fn y2_another_version_is_told_where_the_provider_has_one() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    let layer = |provider| IdempotentWebhook::new(database.pool.clone(), "test", provider);
    let source = StripeSubscriptions::new(Secret::new(KEY).unwrap()).http(at(address));
    let provider = preset("stripe").expect_version("2024-06-20");
    let expected = Subscriptions::new(&layer(provider.clone()), source.clone(), URL).unwrap();
    let expected = expected.several();
    for (versions, told) in [
        (
            vec![Some("2024-06-20")],
            "The subscription is as expected.\n",
        ),
        (
            vec![Some("2019-02-19")],
            "error: events come in the version 2019-02-19, and 2024-06-20 is expected: we_1\n",
        ),
        (
            vec![None, Some("2024-06-20"), None],
            "error: events come in the default version of the account, which may change, and 2024-06-20 is expected: \
             we_1, we_3\n",
        ),
    ] {
        let hooks = (1..).zip(versions).map(|(number, version)| Hook {
            version,
            ..Hook::new(number, URL, &["*"])
        });
        api.set_hooks(hooks);
        assert_eq!(expected.compare().await.unwrap().to_string(), told);
    }
    api.set_hooks([with_version(Hook::new(1, URL, &["*"]), "2019-02-19")]);
    // If no version is expected, any version is right. If several versions are expected, each of
    // them is right.
    let any = Subscriptions::new(&layer(preset("stripe")), source.clone(), URL).unwrap();
    assert!(!any.compare().await.unwrap().has_errors());
    let both = provider.expect_version("2019-02-19");
    let both = Subscriptions::new(&layer(both), source, URL).unwrap();
    assert!(!both.compare().await.unwrap().has_errors());
    // A version that is set on `Subscriptions` takes precedence over the version that the provider
    // expects.
    let told = both.api_version("1").compare().await.unwrap().to_string();
    assert_eq!(
        told,
        "error: events come in the version 2019-02-19, and 1 is expected: we_1\n"
    );
}

#[tokio::test]
async fn y2_github_subscribes_no_action_apart_and_tells_the_last_answer() {
    let database = Database::new().await;
    let handled = ["pull_request.opened", "issues.*", "push"];
    let hook = Hook::new(7, URL, &["pull_request", "issues", "push"]);
    let report = found(&database.pool, "github", &handled, [hook.clone()]).await;
    assert_eq!(report.to_string(), "The subscription is as expected.\n");

    let hook = Hook {
        types: vec!["push".to_owned(), "star".to_owned()],
        last_status: Some(502),
        ..hook
    };
    let report = found(&database.pool, "github", &handled, [hook.clone()]).await;
    assert_eq!(
        report.to_string(),
        "error: pull_request.opened has a handler and is not subscribed\n\
         error: issues.* has a handler and is not subscribed\n\
         hint: star is subscribed and has no handler\n\
         hint: the last answer to the subscription 7 was 502\n"
    );
    let answered = Hook {
        last_status: Some(204),
        types: vec!["*".to_owned()],
        ..hook
    };
    let report = found(&database.pool, "github", &handled, [answered]).await;
    assert!(!report.has_errors(), "{report}");
}

#[tokio::test]
async fn y2_the_topics_of_shopify_are_found_in_capitals() {
    let database = Database::new().await;
    let handled = [
        "orders/create",
        "customers_marketing_consent/update",
        "products/*",
    ];
    let hooks = |topics: &[&str]| -> Vec<Hook> {
        let hooks = (1..).zip(topics);
        hooks
            .map(|(number, topic)| Hook::new(number, URL, &[topic]))
            .collect()
    };
    let topics = [
        "ORDERS_CREATE",
        "CUSTOMERS_MARKETING_CONSENT_UPDATE",
        "PRODUCTS_DELETE",
    ];
    let report = found(&database.pool, "shopify", &handled, hooks(&topics)).await;
    assert_eq!(
        report.to_string(),
        "hint: products/* has a handler, but only some of its types are subscribed: PRODUCTS_DELETE\n"
    );

    let report = found(
        &database.pool,
        "shopify",
        &handled,
        hooks(&["ORDERS_CREATE", "ORDERS_PAID"]),
    )
    .await;
    assert_eq!(
        report.to_string(),
        "error: customers_marketing_consent/update has a handler and is not subscribed\n\
         error: products/* has a handler and is not subscribed\n\
         hint: ORDERS_PAID is subscribed and has no handler\n"
    );
    // A queue is not an address of this endpoint.
    let queue = Hook::new(1, "pubsub://project:topic", &["ORDERS_CREATE"]);
    let report = found(&database.pool, "shopify", &handled, [queue]).await;
    assert!(
        report
            .to_string()
            .contains("and there is no other subscription (the API does not list subscriptions in")
    );
}

/// The mandatory topics are configured in the app, and the other topics in the API.
#[tokio::test]
async fn y2_the_mandatory_topics_of_shopify_are_no_error() {
    let database = Database::new().await;
    let handled = [
        "orders/create",
        "customers/data_request",
        "customers/redact",
        "shop/redact",
        "shop/update",
    ];
    let hook = Hook::new(1, URL, &["ORDERS_CREATE"]);
    let report = found(&database.pool, "shopify", &handled, [hook]).await;
    let not_listed = "has a handler, and the API does not say whether it is subscribed";
    assert_eq!(
        report.to_string(),
        format!(
            "error: shop/update has a handler and is not subscribed\n\
             hint: customers/data_request {not_listed}\n\
             hint: customers/redact {not_listed}\n\
             hint: shop/redact {not_listed}\n"
        )
    );
}

/// The application builds its layer with `Events::layer` after the comparison was set up.
#[tokio::test]
async fn y2_the_table_of_the_layer_is_the_expectation() {
    let database = Database::new().await;
    let (api, address) = Api::start("stripe").await;
    api.set_hooks([Hook::new(1, URL, &["charge.updated"])]);
    let layer = IdempotentWebhook::new(database.pool.clone(), "test", preset("stripe"));
    let source = StripeSubscriptions::new(Secret::new(KEY).unwrap()).http(at(address));
    let subscriptions = Subscriptions::new(&layer, source, URL).unwrap();
    let told = async || subscriptions.compare().await.unwrap().to_string();
    assert_eq!(told().await, "The subscription is as expected.\n");

    // `otherwise` handles all other types, so no type is without a handler.
    let events = Events::new().on("invoice.paid", handle).otherwise(handle);
    let _: Router = Router::new().route("/", post(events.layer(layer)));
    assert_eq!(
        told().await,
        "error: invoice.paid has a handler and is not subscribed\n"
    );
    // The comparison only reads.
    assert_eq!(
        api.requests(),
        [
            "/v1/webhook_endpoints?limit=100",
            "/v1/webhook_endpoints?limit=100"
        ]
    );
    let rows: i64 = sqlx::query_scalar("select count(*) from idempotent_webhook.subscriptions")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn y2_an_address_that_is_none_is_refused() {
    let database = Database::new().await;
    for address in [
        "",
        "/webhooks",
        "example.com/webhooks",
        "ftp://example.com/",
    ] {
        let layer = IdempotentWebhook::new(database.pool.clone(), "test", preset("stripe"));
        let source = StripeSubscriptions::new(Secret::new(KEY).unwrap());
        let refused = Subscriptions::new(&layer, source, address).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the address is not an HTTP URL: it must start with https:// or http://, and a host name with letters other \
             than a to z must be written in ASCII, such as xn--bcher-kva.example"
        );
    }
}
