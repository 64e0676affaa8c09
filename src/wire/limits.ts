const MiB = 1024 * 1024

/** The longest line, event or answer taken from a server: a large image in base64 fits, a runaway does not. */
export const maxMessage = 16 * MiB

/** Nesting allowed in a message: real ones stay under 40, and parsers that recurse break in the thousands. */
export const maxDepth = 256

/** How much of what a child process wrote to stderr is remembered: enough for a stack trace and its cause. */
export const maxStderr = 64 * 1024

/** How much of one line that a server wrote beside the protocol reaches the log. */
export const maxLoggedLine = 2 * 1024
