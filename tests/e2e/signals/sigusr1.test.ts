import { expect, test } from 'vitest'
import { startCommand } from '../../fixtures/command.ts'
import { listeningPort } from '../../fixtures/listening.ts'
import { stdioServers } from '../../fixtures/servers.ts'

test.concurrent.each([{ words: [] }, { words: ['--workers', '2'] }])(
  'B6: SIGUSR1 opens no inspector, and the process lives on ($words)',
  async ({ words }) => {
    await using toolway = await startCommand({ mcpServers: { probe: stdioServers.probe() } }, { words })
    const own = Number(new URL(toolway.url).port)
    const workers = toolway.children().filter((pid) => listeningPort(pid) !== undefined)
    for (const pid of [toolway.pid, ...workers]) process.kill(pid, 'SIGUSR1')
    // The inspector starts on a thread of its own, within a few answers.
    const live = new URL('/livez', toolway.url)
    for (let count = 0; count < 50; count++) expect((await fetch(live)).status).toBe(200)
    expect(toolway.said()).not.toMatch(/debugger|inspector/i)
    for (const pid of [toolway.pid, ...workers]) {
      process.kill(pid, 0)
      expect(listeningPort(pid) ?? own).not.toBe(9229)
    }
  },
)
