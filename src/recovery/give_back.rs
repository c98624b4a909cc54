//! Deliveries that were taken and do not begin.

use std::time::Duration;

use sqlx::PgConnection;

use super::group_commit::GroupWrite;
use super::keep::{GIVE_BACK, interval};
use super::replay::Replay;

/// An attempt that was counted and does not begin. It is due as before.
#[derive(Debug)]
pub(super) struct GiveBack(pub(super) Replay);

impl GroupWrite for GiveBack {
    type Result = ();

    fn size(&self) -> usize {
        0
    }

    async fn write(
        connection: &mut PgConnection,
        group: &[&Self],
    ) -> sqlx::Result<Vec<Option<()>>> {
        for Self(replay) in group {
            let delivery = replay.delivery("".into());
            let statement = sqlx::query(GIVE_BACK)
                .bind(delivery.endpoint())
                .bind(delivery.key_tenant())
                .bind(delivery.id())
                .bind(1_i32)
                .bind(interval(Duration::ZERO))
                .bind(replay.retries().cast_signed());
            statement.execute(&mut *connection).await?;
        }
        Ok(vec![Some(()); group.len()])
    }
}
