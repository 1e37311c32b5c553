//! The code in the documents compiles: `snippets.py`.

use crate::stories::{play, stories};

stories! { play, "snippets.py":
    c_compiles
    cpp_compiles
    csharp_compiles
    python_has_the_names
}
