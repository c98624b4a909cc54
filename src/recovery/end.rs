//! The end of kept deliveries.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::PgConnection;

use super::group_commit::GroupWrite;
use super::keep::Keep;
use crate::delivery::Delivery;
use crate::transaction::{DatabaseError, Store};

/// Ends kept deliveries of an endpoint and a tenant. If one was processed, the failures of the
/// endpoint are no longer in a row.
///
/// With `any`, each is found by the primary key, whatever the planner knows of the table. It must
/// not see how many there are, or it would plan anew each time: hence the `select`.
///
/// Postgres runs the last of such parts first: a row before its request, as in a discard. The row of the
/// endpoint comes after those of its deliveries, as when they are taken, and when they fail.
///
/// If all were processed, the commit does not wait for the disk. If Postgres crashes and loses it,
/// the rows stay behind, and the claim ends them as duplicates.
const END: &str = "
    with request as (
        delete from idempotent_webhook.kept_requests
        where endpoint = $1 and tenant = $2 and delivery_id = any((select $3)::text[])
    ),
    ended as (
        delete from idempotent_webhook.kept_deliveries
        where endpoint = $1 and tenant = $2 and delivery_id = any((select $3)::text[])
            and (
                select case when $5 then set_config('synchronous_commit', 'off', true) else '' end
            ) is not null
        returning 1
    )
    update idempotent_webhook.kept_endpoints
    set failed_ids = '{}', probe_at = null
    where endpoint = $1 and $4 and (cardinality(failed_ids) > 0 or probe_at is not null)
        and (select count(*) from ended) >= 0
";

/// A kept delivery that is processed or discarded.
#[derive(Debug)]
pub(super) struct End {
    delivery: Delivery,
    processed: bool,
}

impl Keep {
    /// Ends what is kept of a delivery that is processed or discarded.
    pub(crate) async fn end(
        &self,
        store: &Store,
        delivery: &Delivery,
        processed: bool,
    ) -> Result<(), DatabaseError> {
        let end = End {
            delivery: delivery.clone(),
            processed,
        };
        self.ends.write(store, end).await
    }
}

impl GroupWrite for End {
    type Result = ();

    // Almost all are processed, and nothing depends on when their rows end.
    const LINGER: Duration = Duration::from_millis(20);

    fn size(&self) -> usize {
        self.delivery.id().as_str().len()
    }

    async fn write(
        connection: &mut PgConnection,
        group: &[&Self],
    ) -> sqlx::Result<Vec<Option<()>>> {
        let mut of_tenants: BTreeMap<&str, Vec<&Self>> = BTreeMap::new();
        for one in group {
            let of_tenant = of_tenants.entry(one.delivery.key_tenant()).or_default();
            of_tenant.push(one);
        }
        for (tenant, group) in of_tenants {
            let ids: Vec<_> = group.iter().map(|one| one.delivery.id().as_str()).collect();
            let statement = sqlx::query(END)
                .bind(group.first().map(|one| one.delivery.endpoint()))
                .bind(tenant)
                .bind(ids)
                .bind(group.iter().any(|one| one.processed))
                .bind(group.iter().all(|one| one.processed));
            statement.execute(&mut *connection).await?;
        }
        Ok(vec![Some(()); group.len()])
    }
}
