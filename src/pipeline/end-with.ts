/**
 * Waits for work until its signal aborts, also when the work does not listen. Like `waitFor` of core, without the race
 * of two promises, which costs more than all else that it does: this runs twice in every call.
 */
export const endWith = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    const done = () => signal.removeEventListener('abort', stop)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    // Whoever has stopped waiting need not hear how it ended.
    work.then(
      (value) => {
        done()
        resolve(value)
      },
      (error) => {
        done()
        reject(error)
      },
    )
  })
