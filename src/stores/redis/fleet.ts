import { randomBytes } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Fleet, TakenOver } from '../../core/fleet.ts'
import { createSeal, type Seal } from '../../core/seal.ts'
import type { SharedRedis } from './connection.ts'
import { createScript } from './script.ts'

/** Each says so often that it is there, and looks who else is. */
const beatMs = 1_000
/** Who was not heard of for so long is gone. */
const goneMs = 4_000
/** Longer than any session may be idle. */
const sessionMs = 2 * 3_600_000

/** KEYS: session, prefix of replicas; ARGV: self, one out of reach. Gives who holds it and where, or what we need for it. */
const takeOver = createScript(`
  local holder = redis.call('HGET', KEYS[1], 'holder')
  if not holder then return false end
  local address = holder ~= ARGV[1] and holder ~= ARGV[2] and redis.call('GET', KEYS[2] .. holder)
  if address then return { holder, address } end
  redis.call('HSET', KEYS[1], 'holder', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ${sessionMs})
  return { redis.call('HGET', KEYS[1], 'record') }
`)

export interface RedisFleetOptions {
  readonly redis: SharedRedis
  readonly clock: Clock
  /** What all replicas share, and nobody else knows. */
  readonly secret: string
}

/** Joins the replicas that use the same Redis. While it is away, those that were known last are still asked. */
export function redisFleet({ redis, clock, secret }: RedisFleetOptions): RedisFleet {
  const self = randomBytes(6).toString('base64url').replaceAll('.', '_')
  const seal: Seal = createSeal(secret)
  const at = (name: string) => `${redis.prefix}{fleet}:${name}`
  let known = new Map<string, string>()
  let address: string | undefined
  let timer: Disposable | undefined
  let ended = false

  const beat = async () => {
    timer = undefined
    const mine = address
    const names = await redis.ask(async (client) => {
      if (mine !== undefined) {
        const line = client
          .multi()
          .set(at(`replica:${self}`), mine, 'PX', goneMs)
          .sadd(at('replicas'), self)
        await line.exec()
      }
      return client.smembers(at('replicas'))
    })
    if (names !== undefined && names.length > 0) await look(names)
    if (!ended) timer = clock.after(beatMs, () => void beat())
  }

  const look = async (names: readonly string[]) => {
    const addresses = await redis.ask((client) => client.mget(names.map((name) => at(`replica:${name}`))))
    if (addresses === undefined) return
    const pairs = names.map((name, index) => [name, addresses[index]] as const)
    known = new Map(pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'))
    const gone = pairs.filter(([, found]) => found === null).map(([name]) => name)
    if (gone.length > 0) await redis.ask((client) => client.srem(at('replicas'), ...gone))
  }

  return {
    self,
    async join(own) {
      address = own
      timer?.[Symbol.dispose]()
      await beat()
    },
    addressOf: (replica) => (replica === self ? undefined : known.get(replica)),
    unreachable: (replica) => void known.delete(replica),
    keep(session, record) {
      void redis.ask((client) =>
        client
          .multi()
          .hset(at(`session:${session}`), { holder: self, record })
          .pexpire(at(`session:${session}`), sessionMs)
          .exec(),
      )
    },
    async takeOver(session, unreachable = '') {
      const keys = [at(`session:${session}`), at('replica:')]
      const told = await redis.ask((client) => takeOver(client, keys, [self, unreachable]))
      return readTakenOver(told as readonly string[] | null | undefined)
    },
    forget: (session) => void redis.ask((client) => client.del(at(`session:${session}`))),
    sign: (text) => seal.close(text, 'fleet'),
    verify: (signed) => seal.open(signed, 'fleet'),
    async [Symbol.asyncDispose]() {
      ended = true
      timer?.[Symbol.dispose]()
      // Others need not wait until it is missed.
      await redis.ask((client) =>
        client
          .multi()
          .del(at(`replica:${self}`))
          .srem(at('replicas'), self)
          .exec(),
      )
    },
  }
}

function readTakenOver(told: readonly string[] | null | undefined): TakenOver {
  const [first, address] = told ?? []
  if (first === undefined) return undefined
  return address === undefined ? { record: first } : { heldBy: first, address }
}

export interface RedisFleet extends Fleet, AsyncDisposable {
  /** Tells the others where this one takes requests. */
  join(address: string): Promise<void>
}
