import type { PageText } from '../page-text.ts'

const guardedBy = (settings: string) =>
  `The \`rule\` in the error names the server and the guard. In the guard, ${settings}.`

/** Invalid arguments. */
export const args = {
  INVALID_ARGUMENTS: {
    happened: "The arguments do not match the tool's schema",
    remedy: 'Correct the fields that the message names',
    causes: [
      'A field is missing, unknown or of the wrong type. The message names the first few of these fields and suggests corrections.',
      'The cursor in a list request is invalid or expired.',
      'The tool asked for something that the client does not support (sampling, elicitation, roots).',
      'The caller tried to run `execute_tool` or `execute_tools` through `execute_tool`, which is not possible.',
    ],
    model: [
      'Correct the fields that the message names and call again. Nothing was sent.',
      'If you do not know the schema, get it with `get_server_tools`.',
    ],
    operator: [
      "`toolway tools show TOOL` shows a tool's input schema.",
      'Calls to a tool whose own schema is invalid are refused with [QUARANTINED](QUARANTINED.md) instead; the log names these tools.',
    ],
    keys: [],
    commands: ['toolway tools show TOOL', 'toolway call TOOL --args JSON'],
    related: ['INVALID_PATH', 'UNSAFE_SQL', 'UNSAFE_URL'],
  },
  INVALID_PATH: {
    happened: 'A path is outside the allowed folders',
    remedy: 'Use a path inside the allowed folders',
    causes: [
      'A `path` guard checks this argument, and the path is outside its `roots` after symbolic links are resolved.',
      'The path contains `..`, is relative, is a URL, starts with `~`, is encoded, or contains suspicious characters.',
      'The argument is not a string but `null`, a number or an object. A guarded argument must be a string or absent.',
    ],
    model: ['Use a plain absolute path inside one of the folders that the message names.'],
    operator: [guardedBy('`roots` lists the allowed folders')],
    keys: ['mcpServers.*.guards'],
    commands: [],
    related: ['INVALID_ARGUMENTS', 'UNSAFE_URL'],
  },
  UNSAFE_SQL: {
    happened: 'The SQL text contains a statement that writes, or does not consist of exactly one statement',
    remedy: 'Send one statement that only reads',
    causes: [
      'An `sql` guard with `readOnly` checks this argument, and the statement writes, possibly inside a CTE, with `SELECT INTO`, `COPY` or `DO`, or through a function with side effects.',
      'The text contains more than one statement, or none.',
      'The text cannot be parsed in the dialect set for the guard, or no dialect is set and databases would interpret the quotes and comments in the text differently.',
      'The argument is not a string but `null`, a number or an object. A guarded argument must be a string or absent.',
    ],
    model: ['Send one simple statement that only reads.'],
    operator: [guardedBy('`dialect` sets the SQL dialect, and `readOnly: false` allows writes')],
    keys: ['mcpServers.*.guards'],
    commands: [],
    related: ['WRITE_NOT_ALLOWED', 'INVALID_ARGUMENTS'],
  },
  UNSAFE_URL: {
    happened: 'The address is private or not allowed',
    remedy: 'Use a public address',
    causes: [
      'A `url` guard checks this argument, and the host is, or resolves to, a private, loopback or reserved address.',
      'The URL is not plain `http` or `https`, carries a user name or password, or is ambiguous, because different parsers would read it differently.',
      'The host name cannot be resolved.',
      'The argument is not a string but `null`, a number or an object. A guarded argument must be a string or absent.',
    ],
    model: ['Use an `http` or `https` URL with a public host. Do not try other spellings of the same address.'],
    operator: [guardedBy('`allowPrivate` allows private and loopback addresses')],
    keys: ['mcpServers.*.guards'],
    commands: [],
    related: ['INVALID_PATH', 'INVALID_ARGUMENTS'],
  },
} as const satisfies Record<string, PageText>
