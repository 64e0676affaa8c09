import type { SkillDetail, SkillView } from '../../../src/admin/contract.ts'

/** A skill that has changed and hides a character. */
export const sceneSkillView: SkillView = {
  ...{ name: 'skill://github/acme/release-notes/SKILL.md', server: 'github', title: 'release-notes' },
  description: 'Writes release notes from merged pull requests.',
  label: 'skill:github.skill://acme/release-notes/SKILL.md',
  ...{ hash: 'a'.repeat(64), pin: 'flagged', quarantined: true, flags: ['hidden-character'] },
}

export const sceneSkill: SkillDetail = {
  ...sceneSkillView,
  files: [
    { path: 'SKILL.md', digest: `sha256:${'b'.repeat(64)}`, size: 210 },
    { path: 'templates/notes.md', digest: `sha256:${'c'.repeat(64)}`, size: 90 },
  ],
  text: '---\nname: release-notes\ndescription: Writes release notes.\n---\n\nList the \\u{200b}merged pull requests.',
  failure: null,
  findings: [{ kind: 'hidden-character', severity: 'high', where: 'text', excerpt: 'List the \\u{200b}merged' }],
}
