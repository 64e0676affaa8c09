import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { shown } from '../../../tests/abuse/case.ts'
import { honestUrls, names, urlAttacks } from '../../../tests/abuse/urls.ts'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { rangeOf } from '../../egress/addresses.ts'
import { compileGuards } from './index.ts'
import { type AddressLookup, systemLookup, UnsafeUrl, vetUrl } from './url.ts'

const asked: string[] = []
const lookup: AddressLookup = async (host) => {
  asked.push(host)
  const found = names[host] ?? (host.endsWith('.example.com') ? ['93.184.215.14'] : undefined)
  if (!found) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' })
  return found.map((address) => ({ address, family: isIP(address) || 6 }))
}

const refusal = async (url: string, allowPrivate = false): Promise<ToolwayError | undefined> => {
  const check = compileGuards([{ kind: 'url', arguments: ['url'], allowPrivate }], { server: 'web', lookup })!
  try {
    await check({ url })
    return undefined
  } catch (error) {
    return error as ToolwayError
  }
}

describe('URL guard', () => {
  for (const [why, url] of urlAttacks) {
    test(`F9: refused (${why}) ${shown(url)}`, async () => {
      const error = await refusal(url)
      expect(error).toBeInstanceOf(ToolwayError)
      expect(error).toMatchObject({ code: 'UNSAFE_URL', details: { server: 'web', rule: 'mcpServers.web.guards[0]' } })
    })
  }

  for (const [why, url] of honestUrls) {
    test(`F9: passed (${why}) ${shown(url)}`, async () => {
      expect(await refusal(url)).toBeUndefined()
    })
  }

  test('F9: addresses and internal names are refused without a DNS query', async () => {
    asked.length = 0
    for (const [, url] of urlAttacks.filter(([why]) => why !== 'dns')) await refusal(url)
    expect(asked).toEqual([])
  })

  test('F9: the refusal says what is wrong and never repeats the URL', async () => {
    expect((await refusal('http://user:hunter2@example.com/'))?.message).toBe(
      'The argument "url" contains a user name or password; use an http or https URL of a public host.',
    )
    expect((await refusal('http://10.0.0.1/?token=hunter2'))?.message).toBe(
      'The argument "url" resolves to a private or reserved address; use an http or https URL of a public host.',
    )
    for (const [, url] of urlAttacks) if (url.length > 12) expect((await refusal(url))?.message).not.toContain(url)
  })

  test.each([
    'http://127.0.0.1:3000/',
    'http://localhost/',
    'http://db:8080/',
    'http://10.0.0.1/',
    'http://[::1]/',
    'http://[fd12::1]/',
    'http://private.example/',
    'http://100.64.0.1/',
  ])('F9: allowPrivate lets %s through', async (url) => {
    const check = compileGuards([{ kind: 'url', arguments: ['url'], allowPrivate: true }], {
      server: 'web',
      lookup: async (host) =>
        ['localhost', 'db'].includes(host) ? [{ address: '127.0.0.1', family: 4 }] : lookup(host),
    })!
    await check({ url })
  })

  test.each([
    'http://169.254.169.254/',
    'http://metadata.google.internal/',
    'http://0.0.0.0/',
    'http://224.0.0.1/',
    'http://[fe80::1]/',
    'http://[fd00:ec2::254]/',
    'http://100.100.100.200/',
    'http://a:b@10.0.0.1/',
    'file:///x',
    'http://2130706433/',
  ])('F9: allowPrivate does not let %s through', async (url) => {
    expect((await refusal(url, true))?.code).toBe('UNSAFE_URL')
  })

  test('F9: more URLs than are looked up side by side are refused', async () => {
    const check = compileGuards([{ kind: 'url', arguments: ['all[]'], allowPrivate: false }], {
      server: 'web',
      lookup,
    })!
    await check({ all: Array(32).fill('https://example.com/') })
    await expect(check({ all: Array(33).fill('https://example.com/') })).rejects.toThrow(
      '"all[32]" exceeds the limit of 32 URLs',
    )
  })
})

describe('a vetted URL', () => {
  test('F9: comes with the addresses to connect to', async () => {
    const { url, addresses } = await vetUrl('https://dual.example/x', { allowPrivate: false, lookup })
    expect(url.href).toBe('https://dual.example/x')
    expect(addresses.map(({ address }) => address)).toEqual(names['dual.example'])
    const literal = await vetUrl('http://[2606:4700:4700::1111]:80/', { allowPrivate: false, lookup })
    expect(literal.addresses).toEqual([{ address: '2606:4700:4700::1111', family: 6 }])
  })

  test('F9: is not waited for longer than a lookup may take', async () => {
    const clock = createManualClock()
    const vetting = vetUrl('https://slow.example/', { allowPrivate: false, clock, lookup: () => new Promise(() => {}) })
    clock.advance(5000)
    await expect(vetting).rejects.toThrow(UnsafeUrl)
  })

  test('F9: the system resolves names as other programs do', async () => {
    const found = await systemLookup('localhost')
    expect(found.map(({ address }) => rangeOf(address))).not.toContain('public')
  })
})

describe('places of addresses', () => {
  const octet = fc.nat(255)
  test('F9: no spelling of a private IPv4 address inside IPv6 is public', () => {
    const hidden = fc.oneof(
      fc.tuple(fc.constant(10), octet, octet, octet),
      fc.tuple(fc.constant(127), octet, octet, octet),
      fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
      fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
      fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
      fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
    )
    fc.assert(
      fc.property(hidden, ([a, b, c, d]) => {
        const high = ((a << 8) | b).toString(16)
        const low = ((c << 8) | d).toString(16)
        const dotted = `${a}.${b}.${c}.${d}`
        const spellings = [
          dotted,
          `::ffff:${dotted}`,
          `::FFFF:${high}:${low}`,
          `::${dotted}`,
          `64:ff9b::${high}:${low}`,
          `64:ff9b::${dotted}`,
          `2002:${high}:${low}::`,
          `0:0:0:0:0:ffff:${dotted}`,
          `64:ff9b:1::${dotted}`,
        ]
        for (const spelling of spellings) expect(rangeOf(spelling), spelling).not.toBe('public')
      }),
    )
  })

  test('F9: an address is the same place however it is written', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(0xffff), { minLength: 8, maxLength: 8 }), (groups) => {
        const long = groups.map((group) => group.toString(16).padStart(4, '0')).join(':')
        const short = new URL(`http://[${long}]`).hostname.slice(1, -1)
        expect(rangeOf(short)).toBe(rangeOf(long))
        expect(rangeOf(long.toUpperCase())).toBe(rangeOf(long))
      }),
    )
  })

  test.each(['', 'x', '1.2.3', '1.2.3.4.5', '256.1.1.1', '01.2.3.4', '::1%lo', ':::', '1.2.3.4:80', '[::1]'])(
    'F9: %j is not an address',
    (text) => {
      expect(rangeOf(text)).toBe('reserved')
    },
  )
})
