import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../src/config/load.ts'
import { type Compose, composeFile, dependenciesOf } from './fixtures/deploy/compose.ts'
import { copied, readDockerfile, stagesOf } from './fixtures/deploy/dockerfile.ts'
import { type Manifest, type ManifestOf, manifest } from './fixtures/deploy/kubernetes.ts'
import { temporaryFolder } from './fixtures/folders.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (path: string) => join(root, 'deploy', path)
const text = (path: string) => readFile(at(path), 'utf8')

/** Every variable that a file asks for, with something that a configuration accepts. */
const env = {
  TOOLWAY_TOKEN: 'a-token-of-some-length',
  TOOLWAY_NAME: 'toolway-1',
  TOOLWAY_HOST: 'tools.example.com',
  POD_IP: '10.0.0.7',
  PROMETHEUS_KEY_HASH: `sha256:${'0'.repeat(64)}`,
  POSTGRES_PASSWORD: 'secret',
  REDIS_URL: 'redis://redis:6379',
  POSTGRES_URL: 'postgres://toolway:secret@postgres:5432/toolway',
}

/** The configuration that a file is for this program, or its problems. */
const loaded = async (yaml: string) => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'toolway.yaml')
  await writeFile(file, yaml)
  return (await loadConfig({ paths: [file], env, cwd: folder.path })).config
}

const seconds = (duration: string) => Number(/^(\d+)s$/.exec(duration)?.[1])

describe('B10: the container file', async () => {
  const stages = stagesOf(readDockerfile(await text('Dockerfile')))
  const last = stages.at(-1)?.steps ?? []
  const step = (name: string) => last.findLast((one) => one.name === name)?.rest ?? ''

  test('all files that it copies exist and are not excluded from the build', async () => {
    const ignored = (await text('Dockerfile.dockerignore')).split('\n')
    const known = new Set(stages.map(({ name }) => name))
    const copies = stages.flatMap(({ steps }) => steps.filter(({ name }) => name === 'COPY')).map(copied)
    expect(copies.length).toBeGreaterThan(5)
    for (const { from, sources } of copies) {
      if (from !== undefined) expect(known).toContain(from)
      else
        for (const source of sources) {
          expect(existsSync(join(root, source)), source).toBe(true)
          expect(ignored).toContain(`!${source.split('/')[0]}`)
        }
    }
  })

  test('it runs as an unprivileged user, has an init process that forwards signals and reaps orphans, and a health check', () => {
    expect(step('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    const program = ['node', '--disable-sigusr1', '/opt/toolway/dist/cli/main.js']
    expect(JSON.parse(step('ENTRYPOINT'))).toEqual(['tini', '-s', '--', ...program])
    expect(JSON.parse(step('CMD'))).toEqual(['serve', '--config', '/etc/toolway/toolway.yaml'])
    expect(step('HEALTHCHECK')).toContain('/readyz')
    expect(last.findIndex(({ name }) => name === 'USER')).toBeGreaterThan(
      last.findLastIndex(({ name }) => name === 'RUN'),
    )
    for (const needed of ['bubblewrap', 'tini']) {
      expect(last.some(({ name, rest }) => name === 'RUN' && rest.includes(` ${needed} `))).toBe(true)
    }
  })

  test('it is built with scripts that exist', async () => {
    const { scripts, engines } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    const runs = stages.flatMap(({ steps }) => steps.filter(({ name }) => name === 'RUN')).map(({ rest }) => rest)
    for (const run of runs) {
      for (const [, script = ''] of run.matchAll(/npm run (\S+)/g)) expect(scripts).toHaveProperty(script)
    }
    for (const { steps } of stages) expect(steps[0]?.rest).toContain(`node:${/\d+/.exec(engines.node)?.[0]}-`)
  })
})

describe('B10: the compose file', async () => {
  const file: Compose = composeFile.parse(parse(await text('compose.yaml'), { merge: true }))
  const services = Object.entries(file.services)
  const replicas = services.filter(([, { image }]) => image === 'toolway')

  test('three replicas, each with a volume of its own', () => {
    expect(replicas.map(([name]) => name)).toEqual(['toolway-1', 'toolway-2', 'toolway-3'])
    const volumes = replicas.map(([, { volumes = [] }]) => volumes.find((one) => one.endsWith(':/var/lib/toolway')))
    expect(new Set(volumes).size).toBe(3)
    for (const [name, { environment }] of replicas) expect(environment?.TOOLWAY_NAME).toBe(name)
  })

  test('the services, volumes, secrets and files that it names exist', () => {
    for (const [name, service] of services) {
      for (const other of dependenciesOf(service)) expect(file.services, name).toHaveProperty(other)
      for (const secret of service.secrets ?? []) expect(file.secrets, name).toHaveProperty(secret)
      for (const [source = ''] of (service.volumes ?? []).map((mount) => mount.split(':'))) {
        if (source.startsWith('.')) expect(existsSync(at(source)), source).toBe(true)
        else expect(file.volumes, name).toHaveProperty(source)
      }
      if (service.build) expect(existsSync(join(root, service.build.dockerfile))).toBe(true)
    }
  })

  test('the example of its variables has all that it cannot do without', async () => {
    const given = new Set([...(await text('compose/env.example')).matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name))
    const needed = [...(await text('compose.yaml')).matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name)
    expect(needed.length).toBeGreaterThan(3)
    expect(needed.filter((name) => !given.has(name))).toEqual([])
  })

  test('its configuration loads, and Prometheus reaches the replicas by names that they accept', async () => {
    const { server, stores } = await loaded(await text('compose/toolway.yaml'))
    const targets = parse(await text('compose/prometheus.yml')).scrape_configs[0].static_configs[0].targets as string[]
    expect(targets).toEqual(replicas.map(([name]) => `${name}:4322`))
    expect(server.allowedHosts).toEqual(expect.arrayContaining(replicas.map(([name]) => name)))
    expect(server.advertise).toBe('http://toolway-1:4322')
    expect(new URL(stores.redis?.url ?? '').hostname in file.services).toBe(true)
    expect(new URL(stores.postgres?.url ?? '').hostname in file.services).toBe(true)
    for (const [, { stop_grace_period: grace = '0s' }] of replicas) {
      expect(seconds(grace) * 1000).toBeGreaterThan(server.shutdownGrace)
    }
  })

  test('Grafana finds its dashboard and Prometheus', async () => {
    const [source] = parse(await text('grafana/provisioning/datasources/prometheus.yml')).datasources
    expect(new URL(source.url).hostname in file.services).toBe(true)
    const [provider] = parse(await text('grafana/provisioning/dashboards/toolway.yml')).providers
    expect(file.services.grafana?.volumes?.some((mount) => mount.includes(`:${provider.options.path}/`))).toBe(true)
  })
})

describe('B10: the Kubernetes manifests', async () => {
  const read = async (path: string): Promise<Manifest[]> =>
    parseAllDocuments(await text(`kubernetes/${path}`)).map((document) => manifest.parse(document.toJS()))
  const all = await read('toolway.yaml')
  const [secret] = (await read('secret.example.yaml')) as [ManifestOf<'Secret'>]
  const [monitor] = (await read('service-monitor.yaml')) as [ManifestOf<'ServiceMonitor'>]
  const one = <Kind extends Manifest['kind']>(kind: Kind, name = 'toolway') =>
    all.find((each) => each.kind === kind && each.metadata.name === name) as ManifestOf<Kind>
  const { spec } = one('StatefulSet')
  const pod = spec.template.spec
  const [container] = pod.containers

  test('the objects that they name exist', () => {
    expect(one('Service', spec.serviceName).spec.clusterIP).toBe('None')
    expect(one('ServiceAccount', pod.serviceAccountName)).toBeDefined()
    expect(one('HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe(one('StatefulSet').metadata.name)
    for (const { secretRef } of container.envFrom) expect(secretRef.name).toBe(secret.metadata.name)
    const volumes = [...pod.volumes, ...spec.volumeClaimTemplates.map(({ metadata }) => metadata)]
    expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(volumes.map(({ name }) => name).sort())
    const { key } = monitor.spec.endpoints[0]?.authorization.credentials ?? { key: '' }
    expect(secret.stringData).toHaveProperty(key)
  })

  test('the budget leaves replicas to serve, and the least is what it starts with', () => {
    expect(one('PodDisruptionBudget').spec.maxUnavailable).toBeLessThan(spec.replicas)
    expect(one('HorizontalPodAutoscaler').spec.minReplicas).toBe(spec.replicas)
  })

  test('the configuration loads with what the pod and the secret give it, and a stop has time enough', async () => {
    const yaml = one('ConfigMap').data['toolway.yaml'] ?? ''
    const { server } = await loaded(yaml)
    const asked = [...yaml.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name = '']) => name)
    const given = new Set([...Object.keys(secret.stringData), ...container.env.map(({ name }) => name)])
    expect(asked.filter((name) => !given.has(name))).toEqual([])
    const [, waits] = container.lifecycle.preStop.exec.command
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(Number(waits) * 1000 + server.shutdownGrace)
    // Prometheus asks each replica by its address.
    expect(server.allowedHosts).toContain(env.POD_IP)
  })

  test('it runs as the user of the image', async () => {
    const user = /^USER (\d+):(\d+)$/m.exec(await text('Dockerfile'))
    expect([pod.securityContext.runAsUser, pod.securityContext.runAsGroup].map(String)).toEqual(user?.slice(1))
    expect(container.args).toEqual(['serve', '--config', '/etc/toolway/toolway.yaml'])
  })
})

describe('B10: the systemd unit and the proxies', () => {
  const noSystemd = spawnSync('systemd-analyze', ['--version']).error !== undefined

  test.skipIf(noSystemd)('systemd takes the unit', async () => {
    await using folder = await temporaryFolder()
    const unit = join(folder.path, 'toolway.service')
    // Programs and users that this machine need not have.
    const here = (await text('systemd/toolway.service'))
      .replaceAll(/^(User|Group)=.*$/gm, '$1=root')
      .replaceAll('/usr/bin/node', process.execPath)
    await writeFile(unit, here)
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit])
    expect([status, stdout.toString(), stderr.toString()]).toEqual([0, '', ''])
  })

  test('its configuration loads, and is served from the folders that the unit makes', async () => {
    const { server, stores } = await loaded(await text('systemd/toolway.yaml'))
    const unit = await text('systemd/toolway.service')
    const value = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
    expect(stores.path).toBe(`/var/lib/${value('StateDirectory')}`)
    expect(Number(value('TimeoutStopSec')) * 1000).toBeGreaterThan(server.shutdownGrace)
    expect(value('KillMode')).toBe('mixed')
    expect(value('NoNewPrivileges')).toBe('yes')
    for (const proxy of ['proxy/nginx.conf', 'proxy/Caddyfile']) {
      const lines = await text(proxy)
      for (const host of server.allowedHosts) expect(lines).toContain(host)
      expect(lines).toContain(`127.0.0.1:${server.port}`)
    }
  })

  test('streams pass through every proxy as they come, and braces are closed', async () => {
    for (const path of ['proxy/nginx.conf', 'compose/nginx.conf', 'proxy/Caddyfile']) {
      const lines = (await text(path)).replaceAll(/^\s*#.*$/gm, '')
      if (path.endsWith('.conf')) expect(lines).toContain('proxy_buffering off')
      else expect(lines, 'Caddy would not pass on that a client has disconnected').not.toContain('flush_interval')
      expect(lines.split('{').length, path).toBe(lines.split('}').length)
      if (path.endsWith('.conf')) for (const line of lines.split('\n')) expect(line.trim()).toMatch(/^$|[;{}]$/)
    }
  })
})
