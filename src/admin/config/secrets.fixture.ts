/** A configuration with something secret at every key that can hold one; `n` makes each of them another. */
export const secretive = (n: number) => {
  const secret = (name: string) => `${name}-s3cret${n}`
  const address = (scheme: string, path = 'path') =>
    `${scheme}://user${n}:${secret('pass')}@host.example.com/${path}?key=${secret('query')}#${secret('hash')}`
  return {
    auth: {
      token: secret('gateway-token'),
      keys: [{ id: 'ci', hash: `sha256:${String(n).repeat(64)}`, agents: [] }],
      jwt: { issuer: 'https://issuer.example.com', audience: 'toolway', jwksUrl: address('https') },
    },
    mcpServers: {
      process: {
        command: 'server',
        args: ['--token', secret('a'), `--api-key=${secret('b')}`, '--password', `p${n}w`, `PGPASSWORD=${secret('c')}`],
        // Short ones, and those under a name that says nothing, are secrets, too.
        env: { GITHUB_TOKEN: secret('env'), PIN: `q${n}x`, REGION: secret('plain') },
      },
      remote: {
        url: address('https'),
        headers: { Authorization: `Bearer ${secret('header')}`, 'X-Team': `z${n}z`, Cookie: `id=${secret('cookie')}` },
      },
      bearer: { url: 'https://host.example.com/mcp', auth: { type: 'bearer', token: secret('bearer') } },
    },
    models: { gpt: { kind: 'openai', baseUrl: address('https'), model: 'm', apiKey: secret('model') } },
    sinks: {
      hook: { kind: 'webhook', url: address('https'), headers: { 'X-Key': secret('sink') } },
      tool: { kind: 'tool', tool: 'process.post', arguments: { password: secret('sinkArgument') } },
    },
    stores: { path: '/tmp/x', redis: { url: address('redis', '0') }, postgres: { url: address('postgres') } },
    telemetry: { traces: { otlp: address('https') } },
  }
}

/** What must not be seen of it. */
export const secretIn = (n: number) => new RegExp(`s3cret${n}|p${n}w|q${n}x|z${n}z|user${n}|(?:${n}){64}`)
