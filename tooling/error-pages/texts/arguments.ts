import type { PageText } from '../page-text.ts'

const guardedBy = (settings: string) => `The \`rule\` says which guard of which server it was; ${settings}.`

/** What is wrong with what was sent. */
export const args = {
  INVALID_ARGUMENTS: {
    happened: "The arguments do not fit the tool's schema",
    remedy: 'Correct what the message names',
    causes: [
      'A field is missing, unknown or of the wrong type; the message names up to a few of them and what was meant.',
      'The cursor of a list is unknown or no longer valid.',
      'The tool asked its caller for something (a model, a person, folders) that the client cannot give.',
      '`execute_tool` was asked to run `execute_tool` or `execute_tools`.',
    ],
    model: [
      'Correct the fields that the message names and call again; nothing was sent.',
      'If you do not know the schema, ask `get_server_tools` for it.',
    ],
    operator: [
      '`toolway tools show TOOL` shows what a tool takes.',
      'A schema that is itself at fault is not held against callers: the log says which tools are not checked.',
    ],
    keys: [],
    commands: ['toolway tools show TOOL', 'toolway call TOOL --args JSON'],
    related: ['INVALID_PATH', 'UNSAFE_SQL', 'UNSAFE_URL'],
  },
  INVALID_PATH: {
    happened: 'A path leaves the allowed folders',
    remedy: 'Use a path inside them',
    causes: [
      'A `path` guard watches this argument, and the path lies outside its `roots`, symbolic links followed.',
      'The path climbs with `..`, is relative, is a URL, starts with `~`, is encoded, or has characters that no honest path needs.',
      'The argument is not a string: `null`, a number, an object. A guarded argument is a string or left out.',
    ],
    model: ['Use a plain absolute path inside one of the folders that the message names.'],
    operator: [guardedBy('`roots` are the folders that it allows')],
    keys: ['mcpServers.*.guards'],
    commands: [],
    related: ['INVALID_ARGUMENTS', 'UNSAFE_URL'],
  },
  UNSAFE_SQL: {
    happened: 'The statement is not allowed (several, or a write)',
    remedy: 'Send one reading statement',
    causes: [
      'An `sql` guard with `readOnly` watches this argument, and the statement writes: also inside a CTE, by `SELECT INTO`, `COPY` or `DO`, or through a function with side effects.',
      'There is more than one statement, or none.',
      'The text cannot be parsed in the `dialect` of the guard or, where none is declared, databases would read its quotes and comments in different ways.',
      'The argument is not a string: `null`, a number, an object. A guarded argument is a string or left out.',
    ],
    model: ['Send one statement that only reads, plainly written.'],
    operator: [guardedBy('`dialect` says how it parses, and `readOnly: false` lets writes through')],
    keys: ['mcpServers.*.guards'],
    commands: [],
    related: ['WRITE_NOT_ALLOWED', 'INVALID_ARGUMENTS'],
  },
  UNSAFE_URL: {
    happened: 'The address is private or otherwise refused',
    remedy: 'Use a public address',
    causes: [
      'A `url` guard watches this argument, and the host is, or resolves to, a private, loopback or reserved address.',
      'The URL is not plain `http` or `https`, carries a user name or password, or is written so that parsers disagree about it.',
      'The name of the host cannot be resolved.',
      'The argument is not a string: `null`, a number, an object. A guarded argument is a string or left out.',
    ],
    model: ['Use an `http` or `https` URL of a public host. Do not look for another spelling of the same address.'],
    operator: [guardedBy('`allowPrivate` lets private and loopback addresses through')],
    keys: ['mcpServers.*.guards'],
    commands: [],
    related: ['INVALID_PATH', 'INVALID_ARGUMENTS'],
  },
} as const satisfies Record<string, PageText>
