const MiB = 1024 * 1024

/** The longest line, event or answer taken from a server: a large image in base64 fits, a runaway does not. */
export const maxMessage = 16 * MiB

/** How much of what a child process wrote to stderr is remembered: enough for a stack trace and its cause. */
export const maxStderr = 64 * 1024

/** How much of one line that a server wrote beside the protocol reaches the log. */
export const maxLoggedLine = 2 * 1024
