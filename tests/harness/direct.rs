//! A service without a socket. It runs the code that answers the requests of connections.

use std::sync::{Arc, LazyLock};

use medfeed::api::{Request, Response, Service};
use medfeed::serve::connection::dispatch::Dispatcher;
use medfeed::serve::connection::limits::{Connection, Limits};
use medfeed::serve::connection::permits::Permits;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap()
});

/// A service and its dispatcher. Its requests never long-poll.
pub struct Direct {
    dispatcher: Dispatcher,
}

impl Direct {
    pub fn new(service: Service) -> Direct {
        let permits = Permits::new(&Limits {
            long_polls: 0,
            ..Limits::default()
        });
        Direct {
            dispatcher: Dispatcher::new(Arc::new(service), permits, RUNTIME.handle().clone()),
        }
    }

    /// The response to a request.
    pub fn answer(&self, request: Request) -> Response {
        run(self.respond(request))
    }

    /// As [`Direct::answer`], for [`run`].
    pub async fn respond(&self, request: Request) -> Response {
        let (_open, mut closing) = watch::channel(false);
        self.dispatcher
            .answer(request, &Connection::default(), &mut closing)
            .await
    }
}

/// Runs a future to completion.
pub fn run<T>(asking: impl Future<Output = T>) -> T {
    RUNTIME.block_on(asking)
}
