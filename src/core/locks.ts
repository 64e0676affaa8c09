/** Things that only one may do at a time, however many processes or replicas there are. */
export interface Locks {
  /** Settles when it is ours; it is until disposed of. Rejects where it cannot be had in time. */
  hold(name: string): Promise<AsyncDisposable>
}
