"""The sections of a report's page, in HTML; each module makes one."""
