/** Sets of characters that may follow a token's prefix. */
export const alphabets = {
  hex: '0-9a-f',
  upper: 'A-Z0-9',
  alnum: 'A-Za-z0-9',
  word: 'A-Za-z0-9_',
  url: 'A-Za-z0-9_-',
  dotted: 'A-Za-z0-9_.-',
  base64: 'A-Za-z0-9_+/=-',
} as const

export type Alphabet = keyof typeof alphabets

/** A kind of token with a fixed prefix. */
export interface TokenFormat {
  readonly name: string
  readonly prefixes: readonly string[]
  readonly alphabet?: Alphabet
  /** Min and max characters after the prefix. `min` is lower than today's lengths, to match shorter tokens too. */
  readonly min?: number
  readonly max?: number
  /** For prefixes that occur in ordinary words: the rest must have a digit or mixed case (`digit`), or look random. */
  readonly needs?: 'digit' | 'random'
  /** For tokens of several parts; replaces the alphabet and the length. Every repetition must be bounded. */
  readonly shape?: RegExp
}

const of = (text: string): readonly string[] => text.split(' ')

export const tokenFormats: readonly TokenFormat[] = [
  // Models and AI services
  { name: 'OpenAI and compatible', prefixes: ['sk-'], alphabet: 'url', min: 20, needs: 'digit' },
  { name: 'OpenAI', prefixes: of('sk-proj- sk-svcacct- sk-admin-'), alphabet: 'url', min: 16 },
  { name: 'OpenAI session', prefixes: ['sess-'], alphabet: 'alnum', min: 40, needs: 'digit' },
  { name: 'Anthropic', prefixes: of('sk-ant- sk-ant-api03- sk-ant-oat01- sk-ant-admin01-'), alphabet: 'url', min: 16 },
  { name: 'OpenRouter', prefixes: ['sk-or-v1-'], alphabet: 'alnum', min: 20 },
  { name: 'Langfuse', prefixes: of('sk-lf- pk-lf-'), alphabet: 'url', min: 20 },
  { name: 'Helicone', prefixes: of('sk-helicone- pk-helicone-'), alphabet: 'url', min: 16 },
  { name: 'ElevenLabs', prefixes: ['sk_'], alphabet: 'alnum', min: 40, needs: 'digit' },
  { name: 'E2B', prefixes: of('e2b_ sk_e2b_'), alphabet: 'alnum', min: 20 },
  { name: 'Groq', prefixes: ['gsk_'], alphabet: 'alnum', min: 20 },
  { name: 'xAI', prefixes: ['xai-'], alphabet: 'url', min: 20, needs: 'digit' },
  { name: 'Perplexity', prefixes: ['pplx-'], alphabet: 'alnum', min: 20 },
  { name: 'Replicate', prefixes: ['r8_'], alphabet: 'alnum', min: 20 },
  { name: 'Tavily', prefixes: ['tvly-'], alphabet: 'url', min: 16 },
  { name: 'NVIDIA', prefixes: ['nvapi-'], alphabet: 'url', min: 20 },
  { name: 'Hugging Face', prefixes: of('hf_ api_org_'), alphabet: 'alnum', min: 30 },
  { name: 'Fireworks', prefixes: ['fw_'], alphabet: 'alnum', min: 20, needs: 'digit' },
  { name: 'Cerebras', prefixes: ['csk-'], alphabet: 'alnum', min: 20, needs: 'digit' },
  { name: 'LangSmith', prefixes: of('lsv2_pt_ lsv2_sk_ ls__'), alphabet: 'word', min: 20 },
  { name: 'Pinecone', prefixes: ['pcsk_'], alphabet: 'word', min: 20 },
  { name: 'Weights & Biases', prefixes: ['wandb_v1_'], alphabet: 'word', min: 20 },
  { name: 'Brave', prefixes: ['BSA'], alphabet: 'url', min: 24, max: 32, needs: 'random' },
  { name: 'Firecrawl', prefixes: ['fc-'], alphabet: 'hex', min: 32, max: 32 },
  { name: 'Jina', prefixes: ['jina_'], alphabet: 'url', min: 40 },
  { name: 'Voyage', prefixes: ['pa-'], alphabet: 'url', min: 40, max: 50, needs: 'random' },
  { name: 'Browserbase', prefixes: ['bb_live_'], alphabet: 'url', min: 16 },
  { name: 'Apify', prefixes: ['apify_api_'], alphabet: 'alnum', min: 20 },
  { name: 'Context7', prefixes: of('ctx7sk- ctx7sk_'), alphabet: 'url', min: 16 },
  { name: 'RunPod', prefixes: ['rpa_'], alphabet: 'alnum', min: 30 },
  { name: 'Cursor', prefixes: of('key_ crsr_'), alphabet: 'hex', min: 64 },
  // Clouds and hosting
  { name: 'AWS access key id', prefixes: of('AKIA ASIA ABIA ACCA'), alphabet: 'upper', min: 16, max: 16 },
  { name: 'AWS Bedrock', prefixes: ['ABSK'], alphabet: 'base64', min: 60, needs: 'random' },
  { name: 'AWS Bedrock, short-term', prefixes: ['bedrock-api-key-'], alphabet: 'base64', min: 40 },
  { name: 'Google API key', prefixes: ['AIza'], alphabet: 'url', min: 30 },
  { name: 'Google access token', prefixes: ['ya29.'], alphabet: 'dotted', min: 20 },
  { name: 'Google client secret', prefixes: ['GOCSPX-'], alphabet: 'url', min: 20 },
  { name: 'Google refresh token', prefixes: ['1//0'], alphabet: 'url', min: 30 },
  { name: 'Google express key', prefixes: ['AQ.Ab8'], alphabet: 'url', min: 30 },
  { name: 'DigitalOcean', prefixes: of('dop_v1_ doo_v1_ dor_v1_'), alphabet: 'alnum', min: 20 },
  { name: 'Cloudflare', prefixes: of('cfut_ cfat_ cfk_'), alphabet: 'url', min: 20, needs: 'digit' },
  { name: 'Cloudflare origin CA', prefixes: ['v1.0-'], shape: /[0-9a-f]{20,40}-[0-9a-f]{40,200}/ },
  { name: 'Heroku', prefixes: ['HRKU-'], alphabet: 'url', min: 20 },
  { name: 'Vercel', prefixes: of('vcp_ vci_ vca_ vcr_ vck_'), alphabet: 'alnum', min: 20 },
  { name: 'Vercel Blob', prefixes: ['vercel_blob_rw_'], alphabet: 'word', min: 20 },
  { name: 'Netlify', prefixes: of('nfp_ nfc_ nfo_ nfu_ nfb_'), alphabet: 'alnum', min: 20 },
  { name: 'Render', prefixes: ['rnd_'], alphabet: 'alnum', min: 20, needs: 'digit' },
  {
    name: 'Tailscale',
    prefixes: of('tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook-'),
    alphabet: 'url',
    min: 16,
  },
  { name: 'Fly', prefixes: of('fo1_ fm1_ fm1r_ fm1a_ fm2_'), alphabet: 'base64', min: 20 },
  { name: 'Supabase', prefixes: ['sbp_'], alphabet: 'word', min: 30 },
  { name: 'Supabase keys', prefixes: of('sb_secret_ sb_publishable_'), alphabet: 'url', min: 20 },
  { name: 'Neon', prefixes: ['napi_'], alphabet: 'alnum', min: 30 },
  { name: 'PlanetScale', prefixes: of('pscale_tkn_ pscale_pw_ pscale_oauth_'), alphabet: 'dotted', min: 20 },
  { name: 'Databricks', prefixes: ['dapi'], shape: /[0-9a-f]{32}(?:-[0-9]{1,2})?/ },
  { name: 'Alibaba', prefixes: ['LTAI'], alphabet: 'alnum', min: 16, max: 24, needs: 'digit' },
  { name: 'Pulumi', prefixes: ['pul-'], alphabet: 'hex', min: 32 },
  { name: 'Prefect', prefixes: of('pnu_ pnb_'), alphabet: 'alnum', min: 36 },
  { name: 'Scalingo', prefixes: ['tk-us-'], alphabet: 'url', min: 40 },
  { name: 'ClickHouse Cloud', prefixes: ['4b1d'], alphabet: 'alnum', min: 38, max: 38, needs: 'random' },
  // Code, packages and builds
  { name: 'GitHub', prefixes: of('ghp_ gho_ ghu_ ghs_ ghr_'), alphabet: 'alnum', min: 20 },
  { name: 'GitHub fine-grained', prefixes: ['github_pat_'], alphabet: 'word', min: 20 },
  {
    name: 'GitLab',
    prefixes: of('glpat- glrt- glrtr- gldt- glptt- glcbt- glsoat- glft- glimt- glagent- gloas- glffct- glwt-'),
    alphabet: 'dotted',
    min: 16,
  },
  { name: 'GitLab runner registration', prefixes: ['GR1348941'], alphabet: 'url', min: 16 },
  { name: 'npm', prefixes: ['npm_'], alphabet: 'alnum', min: 30 },
  { name: 'PyPI', prefixes: ['pypi-'], alphabet: 'url', min: 40, needs: 'digit' },
  { name: 'crates.io', prefixes: ['cio'], alphabet: 'alnum', min: 32, max: 32, needs: 'digit' },
  { name: 'RubyGems', prefixes: ['rubygems_'], alphabet: 'alnum', min: 32 },
  { name: 'NuGet', prefixes: ['oy2'], alphabet: 'alnum', min: 43, max: 43 },
  { name: 'Docker Hub', prefixes: of('dckr_pat_ dckr_oat_'), alphabet: 'url', min: 16 },
  { name: 'Artifactory', prefixes: ['AKCp'], alphabet: 'alnum', min: 60 },
  { name: 'Artifactory reference', prefixes: ['cmVmd'], alphabet: 'alnum', min: 59, max: 123 },
  { name: 'CircleCI', prefixes: of('CCIPAT_ CCIPRJ_'), alphabet: 'word', min: 20 },
  { name: 'Buildkite', prefixes: of('bkua_ bkaj_'), alphabet: 'alnum', min: 30 },
  { name: 'Sourcegraph', prefixes: of('sgp_ slk_'), alphabet: 'word', min: 40 },
  { name: 'SonarQube', prefixes: of('squ_ sqp_ sqa_'), alphabet: 'hex', min: 40 },
  { name: 'Clojars', prefixes: ['CLOJARS_'], alphabet: 'alnum', min: 40 },
  { name: 'Octopus Deploy', prefixes: ['API-'], alphabet: 'upper', min: 25, max: 32 },
  { name: 'Harness', prefixes: of('pat. sat.'), shape: /[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}/ },
  { name: 'Infracost', prefixes: ['ico-'], alphabet: 'alnum', min: 32, max: 32, needs: 'digit' },
  { name: 'GitLab session', prefixes: ['_gitlab_session='], alphabet: 'hex', min: 32 },
  // Secrets and identity
  { name: 'Vault', prefixes: of('hvs. hvb. hvr.'), alphabet: 'url', min: 20 },
  { name: 'Vault before 1.10', prefixes: of('s. b. r.'), alphabet: 'alnum', min: 24, max: 24, needs: 'random' },
  { name: 'Doppler', prefixes: of('dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.'), alphabet: 'dotted', min: 20 },
  { name: '1Password service account', prefixes: ['ops_eyJ'], alphabet: 'base64', min: 40 },
  {
    name: '1Password secret key',
    prefixes: ['A3-'],
    shape: /[A-Z0-9]{6}-[A-Z0-9]{6,11}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}(?:-[A-Z0-9]{5})?/,
  },
  { name: 'age', prefixes: of('AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1'), alphabet: 'upper', min: 20 },
  { name: 'Toolway', prefixes: of('tw_ twk_'), alphabet: 'url', min: 16, needs: 'digit' },
  {
    name: 'JWT in base64',
    // The base64 of eyJhbGciOi, eyJ0eXAiOi and eyJraWQiOi.
    prefixes: of('ZXlKaGJHY2lPaU ZXlKMGVYQWlPaU ZXlKcmFXUWlPaU'),
    alphabet: 'base64',
    min: 60,
  },
  {
    name: 'Authress',
    prefixes: of('sc_ ext_ scauth_ authress_'),
    shape: /[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,120}/,
  },
  { name: 'SettleMint', prefixes: of('sm_pat_ sm_aat_ sm_sat_'), alphabet: 'alnum', min: 16 },
  // Work and communication
  { name: 'Slack', prefixes: of('xoxa- xoxb- xoxc- xoxo- xoxp- xoxr- xoxs- xapp- xwfp-'), alphabet: 'url', min: 10 },
  { name: 'Slack cookie', prefixes: ['xoxd-'], alphabet: 'base64', min: 10 },
  { name: 'Slack rotation', prefixes: of('xoxe- xoxe.xoxb- xoxe.xoxp-'), alphabet: 'url', min: 10 },
  {
    name: 'Discord bot',
    // The first part of the token is the base64 of a decimal number.
    prefixes: of('MD MT Mj Mz ND NT Nj Nz OD OT'),
    shape: /[\w-]{20,28}\.[\w-]{6}\.[\w-]{27,45}/,
  },
  { name: 'Notion', prefixes: ['secret_'], alphabet: 'alnum', min: 40, max: 50, needs: 'digit' },
  { name: 'Notion integration', prefixes: ['ntn_'], alphabet: 'alnum', min: 20 },
  { name: 'Linear', prefixes: of('lin_api_ lin_oauth_ lin_wh_'), alphabet: 'alnum', min: 16 },
  { name: 'Figma', prefixes: of('figd_ figo_ figu_ figor_ figur_ figoh_ figuh_'), alphabet: 'url', min: 20 },
  { name: 'Atlassian', prefixes: of('ATATT3 ATCTT3 ATSTT3'), alphabet: 'base64', min: 20 },
  { name: 'Bitbucket', prefixes: ['ATBB'], alphabet: 'base64', min: 20 },
  { name: 'Airtable', prefixes: ['pat'], shape: /[A-Za-z0-9]{14}\.[0-9a-f]{60,70}/ },
  { name: 'HubSpot', prefixes: of('pat-na1- pat-na2- pat-na3- pat-eu1- pat-ap1-'), alphabet: 'url', min: 30 },
  { name: 'Typeform', prefixes: ['tfp_'], alphabet: 'dotted', min: 40 },
  { name: 'Contentful', prefixes: ['CFPAT-'], alphabet: 'url', min: 30 },
  { name: 'Dropbox', prefixes: of('sl. sl.u.'), alphabet: 'url', min: 100 },
  { name: 'Postman', prefixes: ['PMAK-'], alphabet: 'url', min: 20 },
  { name: 'ReadMe', prefixes: ['rdme_'], alphabet: 'alnum', min: 40 },
  { name: 'Adobe', prefixes: ['p8e-'], alphabet: 'url', min: 28, needs: 'digit' },
  { name: 'Frame.io', prefixes: ['fio-u-'], alphabet: 'url', min: 40 },
  { name: 'Facebook', prefixes: ['EAA'], alphabet: 'alnum', min: 90, needs: 'random' },
  { name: 'Teamwork', prefixes: ['tkn.v1_'], alphabet: 'base64', min: 40 },
  { name: 'Zoho', prefixes: ['1000.'], shape: /[0-9a-f]{32}\.[0-9a-f]{32}/ },
  { name: '42', prefixes: of('s-s4t2ud- s-s4t2af-'), alphabet: 'hex', min: 64 },
  // Payment, mail and telephony
  {
    name: 'Stripe',
    prefixes: of('sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_'),
    alphabet: 'alnum',
    min: 10,
  },
  { name: 'Stripe organization', prefixes: of('sk_org_live_ sk_org_test_'), alphabet: 'alnum', min: 10 },
  { name: 'Webhook signing secret', prefixes: ['whsec_'], alphabet: 'base64', min: 10 },
  { name: 'Shopify', prefixes: of('shpat_ shpca_ shppa_ shpss_ shpua_ shptka_'), alphabet: 'alnum', min: 20 },
  { name: 'Square', prefixes: of('sq0atp- sq0csp- sq0idp-'), alphabet: 'url', min: 20 },
  { name: 'Square access', prefixes: ['EAAA'], alphabet: 'url', min: 56, max: 64, needs: 'random' },
  { name: 'Twilio', prefixes: of('SK AC'), alphabet: 'hex', min: 32, max: 32 },
  { name: 'SendGrid', prefixes: ['SG.'], shape: /[\w-]{16,64}\.[\w-]{16,128}/ },
  { name: 'Mailgun', prefixes: ['key-'], alphabet: 'alnum', min: 32, max: 32 },
  { name: 'Brevo', prefixes: of('xkeysib- xsmtpsib-'), alphabet: 'url', min: 40 },
  { name: 'Resend', prefixes: ['re_'], shape: /[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,28}/ },
  { name: 'EasyPost', prefixes: of('EZAK EZTK'), alphabet: 'alnum', min: 54, max: 54 },
  { name: 'Duffel', prefixes: of('duffel_live_ duffel_test_'), alphabet: 'url', min: 30 },
  { name: 'Shippo', prefixes: of('shippo_live_ shippo_test_'), alphabet: 'alnum', min: 30 },
  { name: 'Flutterwave', prefixes: of('FLWSECK- FLWSECK_TEST-'), alphabet: 'url', min: 12 },
  { name: 'IEX Cloud', prefixes: ['sk_'], alphabet: 'hex', min: 32, max: 32 },
  // Operations and monitoring
  { name: 'Sentry', prefixes: of('sntrys_ sntryu_ sntrya_ sntryi_'), alphabet: 'base64', min: 20 },
  { name: 'Grafana', prefixes: of('glsa_ glc_ eyJrIjoi'), alphabet: 'base64', min: 20 },
  { name: 'New Relic', prefixes: of('NRAK- NRII- NRIQ- NRRA- NRJS- NRSP-'), alphabet: 'url', min: 16 },
  { name: 'Datadog', prefixes: of('ddapp_ ddpat_ ddapi_'), alphabet: 'alnum', min: 20 },
  { name: 'PagerDuty', prefixes: of('pdus+ pdeu+'), alphabet: 'base64', min: 16 },
  { name: 'PostHog', prefixes: of('phc_ phx_ phs_'), alphabet: 'alnum', min: 40 },
  { name: 'LaunchDarkly', prefixes: of('sdk- mob- api-'), shape: /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/ },
  { name: 'Mapbox', prefixes: of('sk.eyJ pk.eyJ tk.eyJ'), alphabet: 'dotted', min: 40 },
  { name: 'LocationIQ', prefixes: ['pk.'], alphabet: 'hex', min: 32, max: 32 },
  { name: 'Dynatrace', prefixes: of('dt0c01. dt0s01. dt0s02. dt0s16.'), shape: /[A-Z0-9]{8,24}\.[A-Z0-9]{64}/ },
]

/** A kind of credential without a recognisable form. It is identified by the word before it. */
export interface ContextFormat {
  readonly name: string
  readonly word: string
  readonly alphabet: Alphabet
  readonly lengths: readonly number[]
}

/** Credentials that are matched up to 40 characters after the word, on the same line, if the value looks random. */
export const contextFormats: readonly ContextFormat[] = [
  { name: 'Cloudflare', word: 'cloudflare', alphabet: 'url', lengths: [40] },
  { name: 'AWS secret key', word: 'aws', alphabet: 'base64', lengths: [40] },
  { name: 'Okta', word: 'okta', alphabet: 'url', lengths: [42] },
  { name: 'Okta', word: 'ssws', alphabet: 'url', lengths: [42] },
  { name: 'Auth0', word: 'auth0', alphabet: 'url', lengths: [64] },
  { name: 'Mistral', word: 'mistral', alphabet: 'alnum', lengths: [32] },
  { name: 'Cohere', word: 'cohere', alphabet: 'alnum', lengths: [40] },
  { name: 'Airtable', word: 'airtable', alphabet: 'alnum', lengths: [17] },
  { name: 'Vercel', word: 'vercel', alphabet: 'alnum', lengths: [24] },
  { name: 'PagerDuty', word: 'pagerduty', alphabet: 'url', lengths: [20] },
  { name: 'Discord', word: 'discord', alphabet: 'url', lengths: [32] },
]
