/**
 * Texts that are kept for a while, to be found again by their key: in this process, or in a store that several share.
 * What finds no room, or is away with its store, is as if it had never been kept. None of it ever throws or rejects.
 */
export interface TtlStore {
  /** Keeps a text for so long, in the place of the one before. */
  set(key: string, text: string, ttlMs: number): void | Promise<void>
  /** What is kept, and from now on for so long again: it belongs to something that goes on. */
  get(key: string, ttlMs: number): string | undefined | Promise<string | undefined>
}
