#[derive(serde::Deserialize)]
struct PaidInvoice {
    created: i64,
    data: Data,
}

#[derive(serde::Deserialize)]
struct Data {
    object: Invoice,
}

#[derive(serde::Deserialize)]
struct Invoice {
    amount_paid: i64,
}

async fn paid(
    mut tx: DedupeTx,
    delivery: Delivery,
    Json(event): Json<PaidInvoice>,
) -> Result<StatusCode, HandlerError> {
    sqlx::query("insert into payments (event_id, created, amount) values ($1, $2, $3)")
        .bind(delivery.id())
        .bind(event.created)
        .bind(event.data.object.amount_paid)
        .execute(&mut *tx)
        .await?;
    Ok(StatusCode::OK)
}
