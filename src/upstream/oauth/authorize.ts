import type { Challenge } from './challenge.ts'

/**
 * The credential of one line to a server, as its transport sees it. Where a server needs none there is no such thing,
 * and nothing is asked.
 */
export interface Authorize {
  /**
   * What to send as Authorization; at once where a token is at hand, nothing where the server has not asked for one yet.
   * Rejects with AUTH_REQUIRED where there is none to be had without a person.
   */
  header(): string | undefined | Promise<string | undefined>
  /**
   * The server refused what was sent (nothing, perhaps) with 401 or 403. True where there is another credential now, so
   * that the request, which was not acted on, is worth sending once more. Rejects with AUTH_REQUIRED where a person is
   * needed; false where it is not about a credential of ours.
   */
  refused(challenge: Challenge, sent: string | undefined): Promise<boolean>
}
