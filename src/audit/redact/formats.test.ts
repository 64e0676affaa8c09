import { randomInt } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { alphabets, contextFormats, type TokenFormat, tokenFormats } from './formats.ts'
import { concealPatterns } from './patterns.ts'
import { createRedactor } from './redactor.ts'

// Every token is put together here, so that no scanner takes one for real.
const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))
const letters = new Map<string, readonly string[]>()
const pick = (set: string, length: number) => {
  const from = letters.get(set) ?? ascii.filter((letter) => new RegExp(`[${set}]`).test(letter))
  letters.set(set, from)
  return Array.from({ length }, () => from[randomInt(from.length)] as string).join('')
}
const digits = (length: number) => pick('0-9', length)
const hex = (length: number) => pick('0-9a-f', length)
const alnum = (length: number) => pick('A-Za-z0-9', length)
const upper = (length: number) => pick('A-Z0-9', length)
const url = (length: number) => pick('A-Za-z0-9', 1) + pick('A-Za-z0-9_-', length - 2) + pick('A-Za-z0-9', 1)
/** As random as any, but never by chance a word or a hash. */
const mixed = (length: number) =>
  Array.from({ length }, (_, at) => pick(['a-z', '0-9', 'A-Z'][at % 3] as string, 1)).join('')
const uuid = () => [8, 4, 4, 4, 12].map(hex).join('-')

const { text } = createRedactor({ secrets: [], keys: [] })
const shown = (token: string) => [
  text(`It is ${token}, see?`),
  text(`use "${token}".`),
  text(`https://x.test/?q=a%20${token}&z=1`),
  text(JSON.stringify({ note: `a\n${token}` })),
]

/** Made once for each shape, because that takes longer than all else in these tests. */
const shaped = new Map<RegExp, fc.Arbitrary<string>>()
const ofShape = (shape: RegExp): string => {
  const made = shaped.get(shape) ?? fc.stringMatching(new RegExp(`^(?:${shape.source})$`))
  shaped.set(shape, made)
  return fc.sample(made, 1)[0] as string
}

function generate({ alphabet = 'url', min = 0, max, needs, shape }: TokenFormat, prefix: string): string {
  if (shape) return prefix + ofShape(shape)
  const length = Math.min(max ?? min + 20, min + randomInt(20))
  if (needs) return prefix + mixed(length)
  const plain = alphabets[alphabet].replace(/[_.+/=-]+$/, '')
  return prefix + pick(alphabets[alphabet], length - 1) + pick(plain, 1)
}

describe('B6: token formats in free text', () => {
  test.each(tokenFormats.flatMap((format) => format.prefixes.map((prefix) => [format.name, prefix, format] as const)))(
    '%s: %s',
    (_, prefix, format) => {
      for (let round = 0; round < runs(2, 50).numRuns; round++) {
        const token = generate(format, prefix)
        for (const clean of shown(token)) {
          expect(clean, token).toContain('[redacted]')
          expect(clean).not.toContain(token.slice(prefix.length))
        }
      }
    },
  )

  test.each(contextFormats)('$name, recognized by the word before it', ({ word, lengths }) => {
    for (const length of lengths) {
      const token = mixed(length)
      for (const clean of [`${word} token ${token}`, `${word.toUpperCase()}: ${token}.`]) {
        expect(text(clean)).not.toContain(token)
      }
      expect(text(`an id: ${token}`)).toContain(token)
    }
  })

  /** As the vendors describe them, independent of the table. */
  const examples: Record<string, () => string> = {
    OpenAI: () => `sk-${alnum(20)}T3BlbkFJ${alnum(20)}`,
    'OpenAI project': () => `sk-${'proj'}-${url(74)}T3BlbkFJ${url(74)}`,
    'OpenAI service account': () => `sk-${'svcacct'}-${url(74)}T3BlbkFJ${url(74)}`,
    Anthropic: () => `sk-${'ant'}-api03-${url(93)}AA`,
    'Anthropic OAuth': () => `sk-${'ant'}-oat01-${url(93)}AA`,
    OpenRouter: () => `sk-${'or'}-v1-${hex(64)}`,
    DeepSeek: () => `sk-${hex(16)}1f${hex(14)}`,
    Langfuse: () => `sk-${'lf'}-${uuid()}`,
    Groq: () => `gsk${'_'}${alnum(52)}`,
    xAI: () => `xai${'-'}${alnum(80)}`,
    Perplexity: () => `pplx${'-'}${alnum(48)}`,
    Replicate: () => `r8${'_'}${alnum(37)}`,
    Tavily: () => `tvly${'-'}dev-${alnum(32)}`,
    NVIDIA: () => `nvapi${'-'}${url(64)}`,
    'Hugging Face': () => `hf${'_'}${alnum(34)}`,
    Fireworks: () => `fw${'_'}${mixed(24)}`,
    LangSmith: () => `lsv2${'_pt_'}${hex(32)}_${hex(10)}`,
    Pinecone: () => `pcsk${'_'}${alnum(6)}_${alnum(63)}`,
    ElevenLabs: () => `sk${'_'}${hex(24)}0a${hex(22)}`,
    Brave: () => `BSA${mixed(28)}`,
    Firecrawl: () => `fc${'-'}${hex(32)}`,
    Jina: () => `jina${'_'}${hex(32)}${alnum(28)}`,
    Voyage: () => `pa${'-'}${mixed(43)}`,
    E2B: () => `e2b${'_'}${hex(40)}`,
    Browserbase: () => `bb${'_live_'}${alnum(27)}`,
    Apify: () => `apify${'_api_'}${alnum(36)}`,
    Context7: () => `ctx7${'sk'}-${uuid()}`,
    'AWS access key': () => `AKIA${upper(16)}`,
    'AWS temporary key': () => `ASIA${upper(16)}`,
    'Google API': () => `AIza${'Sy'}${url(33)}`,
    'Google OAuth': () => `ya29${'.'}a0${url(120)}`,
    'Google client': () => `GOCSPX${'-'}${url(28)}`,
    'Azure AD': () => `${alnum(3)}8Q${'~'}${alnum(34)}`,
    'Azure storage': () => `${alnum(76)}${'+A'}St${alnum(5)}${'=='}`,
    'Azure SAS': () => `https://a.blob.core.windows.net/c?sv=2022-11-02&sig=${alnum(40)}%3D`,
    'GitHub personal': () => `ghp${'_'}${alnum(36)}`,
    'GitHub OAuth': () => `gho${'_'}${alnum(36)}`,
    'GitHub user': () => `ghu${'_'}${alnum(36)}`,
    'GitHub server': () => `ghs${'_'}${alnum(36)}`,
    'GitHub refresh': () => `ghr${'_'}${alnum(76)}`,
    'GitHub fine-grained': () => `github${'_pat_'}${alnum(22)}_${alnum(59)}`,
    GitLab: () => `glpat${'-'}${url(20)}`,
    'GitLab routable': () => `glpat${'-'}${url(27)}.01.${alnum(9)}`,
    'GitLab runner': () => `glrt${'-'}${url(20)}`,
    'GitLab runner, registered': () => `GR13489${'41'}${url(20)}`,
    'GitLab deploy': () => `gldt${'-'}${url(20)}`,
    'GitLab trigger': () => `glptt${'-'}${hex(40)}`,
    'GitLab job': () => `glcbt${'-'}${alnum(2)}_${url(20)}`,
    'GitLab SCIM': () => `glsoat${'-'}${url(20)}`,
    'GitLab feed': () => `glft${'-'}${url(20)}`,
    'GitLab mail': () => `glimt${'-'}${url(25)}`,
    'GitLab agent': () => `glagent${'-'}${url(50)}`,
    'Slack bot': () => `xoxb${'-'}${digits(12)}-${digits(12)}-${alnum(24)}`,
    'Slack user': () => `xoxp${'-'}${digits(12)}-${digits(12)}-${digits(12)}-${hex(32)}`,
    'Slack app': () => `xapp${'-'}1-A${upper(10)}-${digits(13)}-${hex(64)}`,
    'Slack refresh': () => `xoxe${'-'}1-${alnum(140)}`,
    'Slack hook': () => `https://hooks.slack.com/${'services'}/T${upper(8)}/B${upper(10)}/${alnum(24)}`,
    'Discord bot': () => `${Buffer.from(`1${digits(17)}`).toString('base64url')}.${alnum(6)}.${url(38)}`,
    'Discord hook': () => `https://discord.com/api/${'webhooks'}/${digits(18)}/${alnum(68)}`,
    Stripe: () => `sk${'_live_'}${alnum(24)}`,
    'Stripe restricted': () => `rk${'_live_'}${alnum(24)}`,
    'Stripe webhook': () => `whsec${'_'}${alnum(32)}`,
    Twilio: () => `SK${hex(32)}`,
    'Twilio account': () => `AC${hex(32)}`,
    SendGrid: () => `SG${'.'}${url(22)}.${url(43)}`,
    Mailgun: () => `key${'-'}${hex(32)}`,
    Mailchimp: () => `${hex(32)}-us${'21'}`,
    npm: () => `npm${'_'}${alnum(36)}`,
    PyPI: () => `pypi${'-'}AgEIcHlwaS5vcmc${mixed(100)}`,
    'crates.io': () => `cio${mixed(32)}`,
    RubyGems: () => `rubygems${'_'}${hex(48)}`,
    NuGet: () => `oy2${pick('a-z0-9', 43)}`,
    'Docker personal': () => `dckr${'_pat_'}${url(27)}`,
    'Docker organization': () => `dckr${'_oat_'}${url(32)}`,
    Notion: () => `secret${'_'}${mixed(43)}`,
    'Notion, new': () => `ntn${'_'}${digits(11)}${alnum(35)}`,
    Linear: () => `lin${'_api_'}${alnum(40)}`,
    'Linear OAuth': () => `lin${'_oauth_'}${hex(64)}`,
    Figma: () => `figd${'_'}${url(40)}`,
    Supabase: () => `sbp${'_'}${hex(40)}`,
    'Supabase secret': () => `sb${'_secret_'}${url(22)}_${alnum(8)}`,
    Atlassian: () => `ATATT3${'xFfGF0'}${url(180)}=${upper(8)}`,
    'Atlassian app': () => `ATCTT3${'xFfGN0'}${url(170)}=${upper(8)}`,
    Bitbucket: () => `ATBB${alnum(32)}`,
    Vault: () => `hvs${'.'}${url(90)}`,
    'Vault batch': () => `hvb${'.'}${url(140)}`,
    'Vault, old': () => `s${'.'}${mixed(24)}`,
    DigitalOcean: () => `dop${'_v1_'}${hex(64)}`,
    Shopify: () => `shpat${'_'}${hex(32)}`,
    Databricks: () => `dapi${hex(32)}`,
    'Databricks, second': () => `dapi${hex(32)}-2`,
    Telegram: () => `${digits(10).replace(/^0/, '1')}:AA${url(33)}`,
    Cloudflare: () => `v1.0${'-'}${hex(24)}-${hex(146)}`,
    'Cloudflare by context': () => `CLOUDFLARE token ${mixed(40)}`,
    'Sentry organization': () => `sntrys${'_'}eyJ${alnum(100)}=_${alnum(43)}`,
    'Sentry user': () => `sntryu${'_'}${hex(64)}`,
    'Sentry DSN': () => `https://${hex(32)}@o${digits(6)}.ingest.sentry.io/${digits(7)}`,
    Postman: () => `PMAK${'-'}${hex(24)}-${hex(34)}`,
    Grafana: () => `glsa${'_'}${alnum(32)}_${hex(8)}`,
    'Grafana Cloud': () => `glc${'_'}eyJ${alnum(80)}=`,
    'New Relic': () => `NRAK${'-'}${upper(27)}`,
    'New Relic license': () => `${hex(36)}NRAL`,
    'Datadog by context': () => `Datadog API key: ${hex(32)}`,
    Airtable: () => `pat${alnum(14)}.${hex(64)}`,
    Asana: () => `1/${digits(16).replace(/^0/, '1')}:${hex(32)}`,
    Heroku: () => `HRKU${'-'}AA${url(58)}`,
    Vercel: () => `vcp${'_'}${alnum(56)}`,
    Netlify: () => `nfp${'_'}${alnum(36)}`,
    Render: () => `rnd${'_'}${mixed(28)}`,
    Tailscale: () => `tskey${'-auth-'}k${alnum(10)}CNTRL-${alnum(32)}`,
    'Square access': () => `EAAA${mixed(60)}`,
    Fly: () => `FlyV1 fm2${'_'}${alnum(120)}==`,
    PlanetScale: () => `pscale${'_tkn_'}${url(43)}`,
    Doppler: () => `dp${'.pt.'}${alnum(43)}`,
    Terraform: () => `${alnum(14)}.atlasv1${'.'}${alnum(67)}`,
    Pulumi: () => `pul${'-'}${hex(40)}`,
    Okta: () => `Authorization: SSWS 00${mixed(40)}`,
    '1Password': () => `ops${'_eyJ'}${alnum(250)}`,
    age: () => `AGE-SECRET${'-KEY-'}1${upper(58)}`,
    Dynatrace: () => `dt0c01${'.'}${upper(24)}.${upper(64)}`,
    Shippo: () => `shippo${'_live_'}${hex(40)}`,
    Flutterwave: () => `FLWSECK${'_TEST-'}${hex(32)}-X`,
    'Frame.io': () => `fio-u${'-'}${url(64)}`,
    Adobe: () => `p8e${'-'}${mixed(32)}`,
    Infracost: () => `ico${'-'}${mixed(32)}`,
    'Octopus Deploy': () => `API${'-'}${upper(12)}7${upper(13)}`,
    Scalingo: () => `tk-us${'-'}${url(48)}`,
    SettleMint: () => `sm${'_pat_'}${alnum(16)}`,
    Harness: () => `pat${'.'}${url(22)}.${hex(24)}.${alnum(20)}`,
    MaxMind: () => `${alnum(6)}_${alnum(29)}_${'mmk'}`,
    ClickHouse: () => `4b${'1d'}${mixed(38)}`,
    'Artifactory reference': () => `cmV${'md'}${alnum(59)}`,
    'AWS Bedrock, short-term': () => `bedrock-api${'-key-'}${alnum(200)}`,
    Facebook: () => `EAA${'M'}${mixed(170)}`,
    'JWT in base64': () => Buffer.from(`eyJhbGciOiJIUzI1NiJ9.eyJ${alnum(40)}.${url(43)}`).toString('base64'),
    'Teams hook': () =>
      `https://x.webhook.office.com/${'webhookb2'}/${uuid()}@${uuid()}/IncomingWebhook/${hex(32)}/${uuid()}`,
    Zoho: () => `1000${'.'}${hex(32)}.${hex(32)}`,
    Teamwork: () => `tkn.v1${'_'}${alnum(71)}`,
    'GitLab session': () => `_gitlab${'_session='}${hex(32)}`,
    'IEX Cloud': () => `sk${'_'}${hex(32)}`,
    Authress: () => `sc${'_'}${hex(12)}.${hex(4)}.acc_${hex(12)}.${hex(40)}`,
    JWT: () => `eyJ${alnum(20)}.eyJ${alnum(40)}.${url(43)}`,
    Bearer: () => `Bearer ${mixed(30)}`,
    'Weights & Biases by context': () => `wandb api key ${hex(40)}`,
    'Exa by context': () => `exa api key = ${uuid()}`,
    'Deepgram by context': () => `the Deepgram API key is ${hex(40)}`,
  }

  test.each(Object.entries(examples))('an example of %s', (_, make) => {
    for (let round = 0; round < runs(3, 50).numRuns; round++) {
      const given = make()
      // The longest piece is the part that nobody may see.
      const pieces = given.split(/[^A-Za-z0-9]+/)
      const longest = pieces.reduce((a, b) => (b.length > a.length ? b : a))
      for (const clean of shown(given)) {
        expect(clean, given).toContain('[redacted]')
        expect(clean).not.toContain(longest)
      }
    }
  })

  test('the secret key of AWS is redacted if its id is beside it', () => {
    const [id, secret] = [`AKIA${upper(16)}`, `${mixed(20)}/${mixed(19)}`]
    for (const given of [`${id},${secret}`, `${id} ${secret}`, `id ${id}\nother: ${secret}\n`, `${secret} (${id})`]) {
      expect(text(given)).not.toContain(secret.slice(0, 20))
    }
    expect(text(`it is ${secret}`)).toContain(secret)
  })
})

describe('B6: texts without tokens', () => {
  const root = join(import.meta.dirname, '../../..')
  // They show addresses with passwords.
  const withPasswords = ['docs/postgres.md', 'src/audit/redact/patterns.ts', 'deploy/compose/toolway.yaml']
  const files = globSync(['docs/**/*.md', 'src/**/*.ts', 'package-lock.json', 'README.md', 'CHANGELOG.md'], {
    cwd: root,
  }).filter((file) => !/\.(?:test|fixture)\.ts$/.test(file) && !withPasswords.includes(file))

  test('nothing in the documentation, the sources and the lock file is taken for a token', () => {
    expect(files.length).toBeGreaterThan(500)
    const wrong = files.flatMap((file) => {
      const content = readFileSync(join(root, file), 'utf8')
      return content.split('\n').filter((line) => concealPatterns(line) !== line)
    })
    expect(wrong).toEqual([])
  })

  test('hashes, UUIDs, commits and identifiers stay', () => {
    for (let round = 0; round < runs(40, 1_000).numRuns; round++) {
      for (const given of [
        `commit ${hex(40)}`,
        `sha256:${hex(64)} and md5 ${hex(32)}`,
        `cache key ${hex(64)}, idempotency key ${uuid()}`,
        `sha512-${pick('A-Za-z0-9+/', 86)}==`,
        `request ${uuid()} took 12 ms`,
        `const key = createHmacSha256DigestOf(token, readFileSync2('a'))`,
        `the access key is documented in docs/Security-Model2/keys.md`,
      ]) {
        expect(text(given)).toBe(given)
      }
    }
  })

  test('prefixes without end take linear time', async () => {
    const parts = [
      ...tokenFormats.flatMap(({ prefixes }) => prefixes),
      'key ',
      'token=',
      'aws ',
      ':AA',
      '1/',
      'Q~',
      `AKIA${'Q'.repeat(16)} `,
    ]
    for (const part of parts) {
      const given = part.repeat(Math.ceil(16_384 / part.length))
      await expectCpuBelow(500, () => concealPatterns(given), part)
    }
  })
})
