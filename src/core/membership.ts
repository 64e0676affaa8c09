/** The replicas that serve one endpoint together, as one of them sees it (B10). */
export interface Membership {
  /** The name of this one. Whatever it hands to clients and holds for them begins with it, so that all know whose it is. */
  readonly self: string
  /** Where another one takes requests; undefined where it is gone. Never waits. */
  addressOf(replica: string): string | undefined
  /** Another one that could not be reached: while there is news of replicas, it is not asked again before it is in it. */
  unreachable(replica: string): void
  /** Keeps what another one would need to go on with a session of ours; false where one has done so already. Never rejects. */
  keep(session: string, record: string): Promise<boolean>
  /** Hears when what was kept may have been forgotten: whoever holds sessions tells of them again. */
  onReturn?(listener: () => void): Disposable
  /**
   * The session of one that is gone becomes ours; or somebody else holds it; or nobody knows it. `unreachable` is one
   * that has just been tried in vain, and is as good as gone. Never rejects.
   */
  takeOver(session: string, unreachable?: string): Promise<TakenOver>
  forget(session: string): void
  /** What only replicas of this fleet can have written: to tell one another what no client may claim. */
  sign(text: string): string
  /** The text, where one of the fleet has signed it. */
  verify(signed: string): string | undefined
}

export type TakenOver = { readonly record: string } | { readonly heldBy: string; readonly address: string } | undefined

/** A name as replicas give it to what they hand out: `replica.rest`. */
export const ownerOf = (name: string): string => name.slice(0, Math.max(name.indexOf('.'), 0))
