//! Orders with their lines, and payments.

pub mod payment {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "payments")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub event_id: String,
        pub note: Option<String>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod order {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub customer: String,
        #[sea_orm(has_many)]
        pub lines: HasMany<super::line::Entity>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod line {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "lines")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub order_id: i32,
        #[sea_orm(unique)]
        pub article: String,
        #[sea_orm(belongs_to, from = "order_id", to = "id")]
        pub order: BelongsTo<super::order::Entity>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub const TABLES: &str = "
    create table payments (event_id text primary key, note text);
    create table orders (id serial primary key, customer text not null);
    create table lines (
        id serial primary key,
        order_id integer not null references orders,
        article text not null unique
    );
";
