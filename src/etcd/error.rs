//! Errors of starting the client.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::quoted::Quoted;

/// Why there is no client. Nothing runs after such an error.
#[derive(Debug, Error)]
pub enum StoreError {
    /// There is no endpoint.
    #[error("there is no etcd endpoint; give at least one, such as http://127.0.0.1:2379")]
    NoEndpoint,
    /// An endpoint is not an address of etcd.
    #[error(
        "the etcd endpoint {} is not http://host:port or https://host:port",
        Quoted(endpoint)
    )]
    BadEndpoint {
        /// The endpoint as given.
        endpoint: String,
    },
    /// A file of TLS cannot be read.
    #[error("the file {} cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The certificates or the key are malformed, or do not belong together.
    #[error(
        "TLS to etcd: {text}; check that the CA, the certificate and the key are PEM files, and that the key is the certificate's"
    )]
    Tls {
        /// The fault.
        text: String,
    },
    /// The password is not text.
    #[error("the password of the etcd user {} is not UTF-8", Quoted(user))]
    BadPassword {
        /// The user.
        user: String,
    },
}
