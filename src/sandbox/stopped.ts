import type { Outcome } from '../core/executor.ts'

type Status = 'timeout' | 'cancelled' | 'refused'

const names = { timeout: 'TimeoutError', cancelled: 'CancelledError', refused: 'SandboxError' } as const

/** Why a program did not come to an end of its own. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
  readonly status: Status

  constructor(status: Status, message: string) {
    super(message)
    this.status = status
  }

  /** A signal's reason as one of ours: whatever others abort with, to the program it is a cancellation. */
  static from(reason: unknown): Stopped {
    return reason instanceof Stopped ? reason : new Stopped('cancelled', 'The program was cancelled.')
  }

  get ending(): Pick<Outcome, 'status' | 'error'> {
    return { status: this.status, error: { name: names[this.status], message: this.message } }
  }
}

/** Something of the sandbox's own that keeps a program from running. */
export const refused = (message: string) => new Stopped('refused', message)
