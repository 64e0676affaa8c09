import { any, pattern, rulesOf } from './rule.ts'

const leave = any('confirmations?, permissions?, approvals?, consent, authori[sz]ation')
const deed = any(
  'run, execute, proceed, perform, approve, delete, call, carry out, install, pay, continue, do it, do this, do so',
  'transfer, apply, accept, follow',
)
const guard = any('sandbox, security, safety, protections?, antivirus, firewall, alarm, audit, guardrails?, hooks')

/** Detect instructions to act without asking people, or to deceive them. */
export const consentRules = rulesOf('consent', [
  {
    pattern: pattern`\b${deed}\b.{0,80}\bwithout (?:any |the |further |first )?(?:asking|${leave}|prompting|being asked|consulting the user|showing (?:it|this|them))\b`,
    unless: /\b(?:never|not|don't|cannot|can't|mustn't|deletes|runs|executes|if true|whether|allows?|set to true)\b/u,
  },
  {
    pattern: pattern`\buser (?:has |have )?(?:already |pre-?|previously |implicitly )+ ?(?:approved?|agreed?|consent(?:ed|s)?|authori[sz]ed|granted)\b|\b(?:assume|presume)\b.{0,12}\buser (?:consents?|agrees?|has (?:approved|agreed|consented)|approves?)\b`,
    unless: /\b(?:only|after|once|if|unless|until|when|whether|check)\b/u,
  },
  {
    pattern: pattern`\b(?:enable|set|turn on|activate|switch on)\b.{0,20}\b(?:auto[-_ ]?(?:approve|run|accept|confirm|execute)|yolo)\b|\b(?:disable|turn off|deactivate|switch off) (?:the )?${guard}\b`,
    near: /\b(?:skip|tell|nobody|safe to|before use|settings file|editor|beforehand|say nothing)\b/u,
  },
  {
    pattern: pattern`\b(?:tell|telling|assure|say|claim|report|pretend|insist|reassure|convince|state)\b.{0,60}\b(?:safe|read-only|recorded|success\w*|green|harmless|needed|nothing|fine|done|free|passed|official|their choice)\b.{0,60}\b(?:even (?:when|if|though)|regardless|no matter|although|anyway|in any case|unattended)\b|\bclaiming that\b`,
  },
  {
    pattern: pattern`\bno matter what the users? (?:asked|chose|said|wants?)\b|\bregardless of (?:the )?(?:user's|their) (?:choice|request|wish\w*|decision|answer)\b|\b(?:prices?|results?|amounts?) (?:are|is) (?:increased|inflated) by\b`,
  },
])
