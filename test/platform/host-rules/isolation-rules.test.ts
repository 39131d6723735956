import { expect, it } from 'vitest'
import { inputRules } from '#server/platform/host-rules/isolation-rules'

const FACTS = { openings: [], nameservers: [], edge_ports: [80, 443], own_networks: '10.200.0.0/13' }

it('a metadata service that this machine runs itself is out of reach, also on a port of the edge', () => {
  const rules = inputRules(FACTS)
  const refused = rules.findIndex((rule) => /-d 169\.254\.0\.0\/16 .*REJECT/.test(rule))
  const edge = rules.findIndex((rule) => rule.includes('--dport 80'))
  expect(refused).toBeGreaterThan(-1)
  expect(refused).toBeLessThan(edge)
})
it('but where the operator lists it', () => {
  const network = '169.254.169.254/32'
  const rules = inputRules({ ...FACTS, openings: [{ network, port: 80 }] })
  const listed = rules.findIndex((rule) => rule.includes(`-d ${network} --dport 80 -j RETURN`))
  expect(listed).toBeGreaterThan(-1)
  expect(listed).toBeLessThan(rules.findIndex((rule) => rule.includes('-d 169.254.0.0/16')))
})
