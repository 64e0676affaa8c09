import type { Clock } from '../../core/clock.ts'
import { OAuthProblem } from './problem.ts'
import { type SignIn, sameState } from './sign-in.ts'

/** A sign-in that somebody has begun in their browser, and whose answer comes to our own door. */
interface Flow {
  readonly server: string
  readonly signIn: SignIn
  readonly until: number
}

/** Sign-ins under way; what nobody comes back to is forgotten. */
export interface Flows {
  add(server: string, signIn: SignIn): void
  /** Finishes the one that an answer belongs to; tells which server it was for. */
  finish(answer: URLSearchParams): Promise<string>
}

const patienceMs = 10 * 60_000
/** Only operators begin them, but one of them may have a loose finger. */
const most = 32

export function createFlows(clock: Clock): Flows {
  let flows: readonly Flow[] = []
  return {
    add(server, signIn) {
      const living = flows.filter(({ until }) => until > clock.monotonic())
      flows = [...living, { server, signIn, until: clock.monotonic() + patienceMs }].slice(-most)
    },
    async finish(answer) {
      const flow = flows.find(({ signIn, until }) => until > clock.monotonic() && sameState(answer, signIn.state))
      if (!flow)
        throw new OAuthProblem(
          `no sign-in waits for this answer (each waits ${patienceMs / 60_000} min, a fixed limit): begin again`,
        )
      flows = flows.filter((one) => one !== flow)
      await flow.signIn.finish(answer)
      return flow.server
    },
  }
}
