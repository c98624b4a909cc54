//! Written by `tests/provider/facts` from `facts.json`.

/// What makes a provider stop sending, in Markdown, if it says so.
pub(crate) fn switched_off(provider: &str) -> Option<&'static str> {
    Some(match provider {
        "airtable" => "after 7 days without a refresh of the webhook (second-hand)",
        "anthropic" => "after about 20 failures in a row (second-hand)",
        "authorize-net" => "after the last attempt (likely)",
        "bigcommerce" => {
            "after the last retry; each failure: a domain is passed over for 3 minutes if less than 90 % of its answers within 2 minutes are a success"
        }
        "box" => {
            "deleted when the last success is 30 days old and the last event came more than 14 days after it"
        }
        "calendly" => "after 24 hours without a success; a new webhook has to be made then",
        "cashfree" => "of payouts after more than five failures in a row",
        "clerk" => "after all attempts have failed for 5 days (likely, as of Svix)",
        "clickup" => "suspended after 100 events that failed; 410: suspended at once",
        "cloudevents" => "after a 410; 410: the sender should send nothing more",
        "discord" => {
            "no more webhook events if too many fail; the URL is removed if a wrong signature is not answered with 401"
        }
        "dropbox" => "if too many notifications fail (likely)",
        "dwolla" => "paused after 400 failures in a row and 24 hours without a success",
        "ebay" => {
            "marked as down after 24 hours without an acknowledgement, with 30 days to mend it (likely)"
        }
        "ecwid" => "blocked after 2 weeks without a success",
        "elevenlabs" => {
            "after 10 failures in a row, if the last success is more than 7 days ago or there was none; it has to be switched on again by hand"
        }
        "figma" => "at once, by a 400; 400: stops the webhook at once",
        "gitea" => "never",
        "github" => "never",
        "gitlab" => {
            "a hook of a project or group: after 4 failures in a row, for 1 minute to 24 hours; after 40 for good; 4xx: before GitLab 17.11, after 4 in a row the hook was disabled for good, and after 5xx only for a time"
        }
        "google-pubsub" => {
            "the subscription is deleted 31 days after its last success, unless it has another `expiration_policy`"
        }
        "help-scout" => "at once, by a 410 (likely); 410: switches the webhook off (likely)",
        "hugging-face" => "after failures that go on, at a time that is not published",
        "intercom" => {
            "paused for 15 minutes after more than 1000 errors in a row within 15 minutes; suspended after a week of errors, with private apps only; 429: throttled, by 1 minute to 2 hours; 410: switches the webhook off (likely)"
        }
        "klaviyo" => "after 48 hours of errors (likely)",
        "linear" => {
            "after failures that go on, at a time that is not published; it is switched on again by hand"
        }
        "lithic" => "after 5 days of failures, as Svix has it (likely)",
        "maxio" => {
            "paused after 25 failures in a row, then tried with one new webhook every 2 hours; disabled after 48 hours of that, when nothing new is recorded any more"
        }
        "meta" => "with Messenger, after failures for an extended time",
        "microsoft-graph" => {
            "when its subscription expires, a time that depends on the resource, unless it is renewed; slow answers: if many take too long, Graph first delays what follows and then drops it for good"
        }
        "nylas" => {
            "for a while if most notifications fail, and for good if they fail for days (likely)"
        }
        "pagerduty" => "for 24 hours, after 3 webhooks in a row were given up (by an older page)",
        "patreon" => {
            "paused after failures, which `num_consecutive_times_failed` of the webhook counts"
        }
        "polar" => "after 10 events in a row that failed for good",
        "razorpay" => "after 24 hours of failures",
        "render" => "after all attempts for a webhook have failed (second-hand)",
        "sentry" => "after 1000 timeouts within 24 hours",
        "shopify" => "a subscription of the Admin API is deleted after 8 failures in a row",
        "shopware" => {
            "after 10 failures in a row, before 6.8; since 6.8, three answers of 401 or 403 suspend the webhook, and most other 4xx drop the delivery (likely)"
        }
        "slack" => "the subscriptions of the app, when more than 95 % of an hour's events fail",
        "square" => "after three weeks without a single success",
        "squarespace" => "after several failures, Squarespace may delete the subscription",
        "standard-webhooks" => "by an answer of 410, which the layer never gives",
        "svix" => "after all attempts have failed for 5 days",
        "twilio" => "never",
        "twitch" => "the subscription is revoked after too many failures",
        "typeform" => "at once by an answer of 404 or 410",
        "woocommerce" => "after more than 5 failures in a row",
        "x" => "the webhook becomes invalid if the handshake fails",
        "xero" => "after 24 hours of failures",
        "zendesk" => "for a while, by a circuit breaker (likely)",
        _ => return None,
    })
}
