/** What a server sent is not HTTP/1.1 as we know it. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer'
  readonly code = 'BAD_HTTP'
}
